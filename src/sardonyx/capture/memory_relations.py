"""Memory that may be the same as other memory, after a branch or a loop.

Where it is not computed which of several places a result is, it is noted which it may be: to read
it after a write of one of them is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sardonyx.capture.alias import AliasTracker
from sardonyx.capture.graph import Value
from sardonyx.capture.memory import Base


@dataclass(frozen=True, slots=True)
class MemoryRelations:
    """In all of these `given` is what the results of a block may be, by their index; which of them
    the `chosen` are is computed; `inside` is what the block made."""

    aliases: AliasTracker

    def hand_on(
        self,
        starts: Sequence[Base],
        given: Sequence[Sequence[Base]],
        chosen: Collection[int],
        inside: set[Value],
    ) -> bool:
        """Relates what the next iteration starts with to the memory from outside that it is;
        whether that says something new of this one."""
        before = self.aliases.relations
        for index, found in enumerate(given[: len(starts)]):
            for other in self._may_be(found, index in chosen, inside):
                if other.root not in inside:
                    self.aliases.relate(starts[index], other)
            self.aliases.inherit(starts[index], found)
            self._relate_to_each(starts, index, given, chosen, inside)
        return self.aliases.relations > before

    def relate_result(
        self,
        results: Sequence[Base],
        index: int,
        given: Sequence[Sequence[Base]],
        chosen: Collection[int],
        inside: set[Value],
    ) -> None:
        """What a block gives for a result may be the memory of the result."""
        for other in self._may_be(given[index], index in chosen, inside):
            self.aliases.relate(results[index], other)
        self.aliases.inherit(results[index], given[index])
        self._relate_to_each(results, index, given, chosen, inside)

    def _may_be(self, found: Sequence[Base], is_chosen: bool, inside: set[Value]) -> list[Base]:
        """Memory that a result may share. One that is chosen is what it may be from outside, and
        shares only what memory that was made inside does."""
        others = []
        for base in found:
            if not is_chosen:
                others.append(base)
            if not is_chosen or base.root in inside:
                others += self.aliases.related.get(base, ())
        return others

    def _relate_to_each(
        self,
        results: Sequence[Base],
        index: int,
        given: Sequence[Sequence[Base]],
        chosen: Collection[int],
        inside: set[Value],
    ) -> None:
        """Results of which the memory may be the same."""
        for place, (result, bases) in enumerate(zip(results, given, strict=False)):
            are_known = index in chosen and place in chosen
            for found in given[index]:
                for base in bases:
                    if are_known and (found is base or not {found.root, base.root} <= inside):
                        continue
                    if self.aliases.are_related(found, base):
                        self.aliases.relate(results[index], result)
