"""The only package that touches torch's private APIs."""

from __future__ import annotations

from sardonyx._torch_private.autograd import autograd_function_of as autograd_function_of
from sardonyx._torch_private.autograd import calls_left_to_run as calls_left_to_run
from sardonyx._torch_private.autograd import sets_up_context_apart as sets_up_context_apart
from sardonyx._torch_private.flags import in_onnx_export as in_onnx_export
from sardonyx._torch_private.flags import is_in_onnx_export as is_in_onnx_export
from sardonyx._torch_private.flags import quiet_loggers as quiet_loggers
from sardonyx._torch_private.flags import rival_exporter as rival_exporter
from sardonyx._torch_private.operators import WITHOUT_TORCH_FUNCTION as WITHOUT_TORCH_FUNCTION
from sardonyx._torch_private.operators import OpOverload as OpOverload
from sardonyx._torch_private.operators import is_composite as is_composite
from sardonyx._torch_private.operators import register_chunked_losses as register_chunked_losses
from sardonyx._torch_private.operators import (
    register_decomposed_quantization as register_decomposed_quantization,
)
from sardonyx._torch_private.operators import set_decomposition as set_decomposition
from sardonyx._torch_private.patches import Hooks as Hooks
from sardonyx._torch_private.patches import autograd_function_calls as autograd_function_calls
from sardonyx._torch_private.patches import export_without_prints as export_without_prints
from sardonyx._torch_private.patches import recording_patches as recording_patches
from sardonyx._torch_private.patches import sizes_that_may_be_zero as sizes_that_may_be_zero
from sardonyx._torch_private.programs import arguments_like as arguments_like
from sardonyx._torch_private.programs import fixed_numbers as fixed_numbers
from sardonyx._torch_private.programs import hints_of as hints_of
from sardonyx._torch_private.programs import mode_of_program as mode_of_program
from sardonyx._torch_private.programs import module_classes as module_classes
from sardonyx._torch_private.programs import qualified_module_classes as qualified_module_classes
from sardonyx._torch_private.programs import result_like as result_like
from sardonyx._torch_private.programs import texts_of_guards as texts_of_guards
from sardonyx._torch_private.programs import user_input_names as user_input_names
from sardonyx._torch_private.programs import user_input_values as user_input_values
from sardonyx._torch_private.pytrees import open_registered_pytree as open_registered_pytree
from sardonyx._torch_private.recording import RecordingMode as RecordingMode
from sardonyx._torch_private.recording import autocast_devices as autocast_devices
from sardonyx._torch_private.recording import close_pytree as close_pytree
from sardonyx._torch_private.recording import condition_of as condition_of
from sardonyx._torch_private.recording import fake_contiguous as fake_contiguous
from sardonyx._torch_private.recording import fake_device as fake_device
from sardonyx._torch_private.recording import fake_like as fake_like
from sardonyx._torch_private.recording import fake_view as fake_view
from sardonyx._torch_private.recording import flex_attention_in_parts as flex_attention_in_parts
from sardonyx._torch_private.recording import forget_numbers_of as forget_numbers_of
from sardonyx._torch_private.recording import guard_expressions as guard_expressions
from sardonyx._torch_private.recording import hint_of as hint_of
from sardonyx._torch_private.recording import is_cast_in_parts as is_cast_in_parts
from sardonyx._torch_private.recording import is_code_of_models as is_code_of_models
from sardonyx._torch_private.recording import is_data_dependent_error as is_data_dependent_error
from sardonyx._torch_private.recording import is_fake_of as is_fake_of
from sardonyx._torch_private.recording import is_higher_order as is_higher_order
from sardonyx._torch_private.recording import is_plain as is_plain
from sardonyx._torch_private.recording import lacks_fake_kernel as lacks_fake_kernel
from sardonyx._torch_private.recording import limit_size as limit_size
from sardonyx._torch_private.recording import look_no_more as look_no_more
from sardonyx._torch_private.recording import new_fake as new_fake
from sardonyx._torch_private.recording import new_input_size as new_input_size
from sardonyx._torch_private.recording import new_number as new_number
from sardonyx._torch_private.recording import new_recording_mode as new_recording_mode
from sardonyx._torch_private.recording import no_modes as no_modes
from sardonyx._torch_private.recording import open_pytree as open_pytree
from sardonyx._torch_private.recording import returned_arguments as returned_arguments
from sardonyx._torch_private.recording import run_in_parts as run_in_parts
from sardonyx._torch_private.recording import run_operator as run_operator
from sardonyx._torch_private.recording import storage_of as storage_of
from sardonyx._torch_private.recording import told_of_symbols as told_of_symbols
from sardonyx._torch_private.recording import with_other_sizes as with_other_sizes
from sardonyx._torch_private.regions import higher_order_name as higher_order_name
from sardonyx._torch_private.symbolic_shapes.empty_sizes import if_it_fits as if_it_fits
from sardonyx._torch_private.symbolic_shapes.empty_sizes import with_open_sizes as with_open_sizes
from sardonyx._torch_private.symbolic_shapes.empty_sizes import (
    with_sizes_as_asked as with_sizes_as_asked,
)
from sardonyx._torch_private.symbolic_shapes.extremes import largest_of_sizes as largest_of_sizes
from sardonyx._torch_private.symbolic_shapes.extremes import smallest_of_sizes as smallest_of_sizes
from sardonyx._torch_private.symbolic_shapes.guards import Guard as Guard
from sardonyx._torch_private.symbolic_shapes.guards import guard_count as guard_count
from sardonyx._torch_private.symbolic_shapes.guards import guards as guards
from sardonyx._torch_private.symbolic_shapes.numbers import UnreadConditions as UnreadConditions
from sardonyx._torch_private.symbolic_shapes.numbers import as_model_number as as_model_number
from sardonyx._torch_private.symbolic_shapes.numbers import large_made as large_made
from sardonyx._torch_private.symbolic_shapes.numbers import numbers_made as numbers_made
from sardonyx._torch_private.symbolic_shapes.numbers import text_made as text_made
from sardonyx._torch_private.symbolic_shapes.numbers import unread_conditions as unread_conditions
from sardonyx._torch_private.symbolic_shapes.size_names import names_of_sizes as names_of_sizes
from sardonyx._torch_private.symbolic_shapes.sizes import depends_on_data as depends_on_data
from sardonyx._torch_private.symbolic_shapes.sizes import dim_of as dim_of
from sardonyx._torch_private.symbolic_shapes.sizes import dynamic_fake as dynamic_fake
from sardonyx._torch_private.symbolic_shapes.sizes import example_sizes as example_sizes
from sardonyx._torch_private.symbolic_shapes.sizes import fixed_symbols as fixed_symbols
from sardonyx._torch_private.symbolic_shapes.sizes import floor_quotient as floor_quotient
from sardonyx._torch_private.symbolic_shapes.sizes import is_decided_by_data as is_decided_by_data
from sardonyx._torch_private.symbolic_shapes.sizes import is_input_size as is_input_size
from sardonyx._torch_private.symbolic_shapes.sizes import is_large as is_large
from sardonyx._torch_private.symbolic_shapes.sizes import (
    new_data_dependent_float as new_data_dependent_float,
)
from sardonyx._torch_private.symbolic_shapes.sizes import (
    new_data_dependent_length as new_data_dependent_length,
)
from sardonyx._torch_private.symbolic_shapes.sizes import (
    new_data_dependent_size as new_data_dependent_size,
)
from sardonyx._torch_private.symbolic_shapes.sizes import (
    new_data_dependent_size_of as new_data_dependent_size_of,
)
from sardonyx._torch_private.symbolic_shapes.sizes import new_fake_mode as new_fake_mode
from sardonyx._torch_private.symbolic_shapes.sizes import plain_number as plain_number
from sardonyx._torch_private.symbolic_shapes.sizes import sym_int as sym_int
from sardonyx._torch_private.symbolic_shapes.sizes import turns as turns
from sardonyx._torch_private.symbolic_shapes.sizes import without_conclusions as without_conclusions
from sardonyx._torch_private.temporary_operators import TemporaryOperators as TemporaryOperators
from sardonyx._torch_private.tensors.fake_runs import Recorder as Recorder
from sardonyx._torch_private.tensors.fake_runs import fake_from as fake_from
from sardonyx._torch_private.tensors.fake_runs import record_decomposition as record_decomposition
from sardonyx._torch_private.tensors.fake_runs import run_on_fakes as run_on_fakes
from sardonyx._torch_private.tensors.fakes import HOLD_FAKES as HOLD_FAKES
from sardonyx._torch_private.tensors.fakes import active_fake_mode as active_fake_mode
from sardonyx._torch_private.tensors.fakes import fake_from_sizes as fake_from_sizes
from sardonyx._torch_private.tensors.fakes import fake_from_strides as fake_from_strides
from sardonyx._torch_private.tensors.fakes import fake_mode_of as fake_mode_of
from sardonyx._torch_private.tensors.fakes import is_fake as is_fake
from sardonyx._torch_private.tensors.fakes import shares_memory as shares_memory
from sardonyx._torch_private.tensors.memory import has_foreign_memory as has_foreign_memory
from sardonyx._torch_private.tensors.memory import lacks_memory as lacks_memory
from sardonyx._torch_private.tensors.memory import memory_address as memory_address
from sardonyx._torch_private.tensors.memory import storage_identity as storage_identity
from sardonyx._torch_private.tensors.memory import whole_memory as whole_memory
from sardonyx._torch_private.tensors.meta_parameters import (
    LargeTensorsWeightless as LargeTensorsWeightless,
)
from sardonyx._torch_private.tensors.meta_parameters import is_weightless as is_weightless
from sardonyx._torch_private.tensors.meta_parameters import weightless_like as weightless_like
from sardonyx._torch_private.tensors.quantized import quantized_tensor as quantized_tensor
from sardonyx._torch_private.torchscript import has_control_flow as has_control_flow
from sardonyx._torch_private.torchscript import inlined_subgraph as inlined_subgraph
from sardonyx._torch_private.torchscript import is_known_to_dispatcher as is_known_to_dispatcher
from sardonyx._torch_private.torchscript import is_script_method as is_script_method
from sardonyx._torch_private.torchscript import is_scripted as is_scripted
from sardonyx._torch_private.torchscript import overload_of as overload_of
from sardonyx._torch_private.torchscript import python_of_script as python_of_script
from sardonyx._torch_private.torchscript import run_script_operator as run_script_operator
from sardonyx._torch_private.torchscript import script_schema as script_schema
from sardonyx._torch_private.torchscript import scripted_class as scripted_class
from sardonyx._torch_private.torchscript import tuple_of_type as tuple_of_type
from sardonyx._torch_private.torchscript import writes_memory_itself as writes_memory_itself
from sardonyx._torch_private.transforms import is_transformed as is_transformed
from sardonyx._torch_private.transforms import (
    transforms_left_in_the_end as transforms_left_in_the_end,
)
