"""Bessel functions and their kin, by the approximations of the Cephes library, as in ATen."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sardonyx.lower.builder import Builder
from sardonyx.lower.kernels import elementwise, series
from sardonyx.lower.kernels.elementwise import Unary
from sardonyx.lower.kernels.series import Rational
from sardonyx.lower.registry import lowering
from sardonyx.lower.values import Tensor

# Rational functions of x^2 up to 5 and of 25 / x^2 beyond.

_J0_NEAR = Rational(
    (
        -4794432209.782018,
        1956174919465.5657,
        -249248344360967.72,
        9708622510473064.0,
    ),
    (
        499.563147152651,
        173785.4016763747,
        48440965.83399621,
        11185553704.535683,
        2112775201154.892,
        310518229857422.56,
        3.1812195594320496e16,
        1.7108629408104315e18,
    ),
)
_Y0_NEAR = Rational(
    (
        15592.436785523574,
        -14663929.59039716,
        5435264770.518765,
        -982136065717.9115,
        87590639439536.7,
        -3466283033847297.0,
        4.4273326857256984e16,
        -1.8495080043698668e16,
    ),
    (
        1041.2835366425984,
        626107.330137135,
        268919633.39381415,
        86400248710.3935,
        20297961275010.555,
        3171577528429750.5,
        2.5059625617265306e17,
    ),
)
_MODULUS_0 = Rational(
    (
        0.0007969367292973471,
        0.08283523921074408,
        1.239533716464143,
        5.447250030587687,
        8.74716500199817,
        5.303240382353949,
        1.0,
    ),
    (
        0.0009244088105588637,
        0.08562884743544745,
        1.2535274390105895,
        5.470977403304171,
        8.761908832370695,
        5.306052882353947,
        1.0,
    ),
)
_PHASE_0 = Rational(
    (
        -0.011366383889846916,
        -1.2825271867050931,
        -19.553954425773597,
        -93.20601521237683,
        -177.68116798048806,
        -147.07750515495118,
        -51.41053267665993,
        -6.050143506007285,
    ),
    (
        64.3178256118178,
        856.4300259769806,
        3882.4018360540163,
        7240.467741956525,
        5930.727011873169,
        2062.0933166032783,
        242.0057402402914,
    ),
)
_J1_NEAR = Rational(
    (
        -899971225.7055594,
        452228297998.19403,
        -72749424522181.83,
        3682957328638529.0,
    ),
    (
        620.8364781180543,
        256987.25675774884,
        83514679.14319493,
        22151159547.97925,
        4749141220799.914,
        784369607876235.9,
        8.952223361846274e16,
        5.322786203326801e18,
    ),
)
_Y1_NEAR = Rational(
    (
        1263204747.9017804,
        -647355876379.1603,
        114509511541823.73,
        -8127702555013251.0,
        2.024394757135949e17,
        -7.788771962659501e17,
    ),
    (
        594.3015923461282,
        235564.09294306856,
        73481194.44597217,
        18760131610.870617,
        3882312774962.3857,
        620557727146953.8,
        6.871410873553005e16,
        3.9727060811656064e18,
    ),
)
_MODULUS_1 = Rational(
    (
        0.0007621256162081731,
        0.07313970569409176,
        1.1271960812968493,
        5.112079511468076,
        8.424045901417724,
        5.214515986823615,
        1.0,
    ),
    (
        0.0005713231280725487,
        0.06884559087544954,
        1.105142326340617,
        5.073863861286015,
        8.399855543276042,
        5.209828486823619,
        1.0,
    ),
)
_PHASE_1 = Rational(
    (
        0.05108625947501766,
        4.982138729512334,
        75.82382841325453,
        366.7796093601508,
        710.8563049989261,
        597.4896124006136,
        211.68875710057213,
        25.207020585802372,
    ),
    (
        74.23732770356752,
        1056.4488603826283,
        4986.410583376536,
        9562.318924047562,
        7997.041604473507,
        2826.1927851763908,
        336.0936078106983,
    ),
)

# Chebyshev series: exp(-x) I in x up to 8 and in 1 / x beyond, K in x^2 up to 2, then in 1 / x.

_I0_NEAR = (
    0.6767952744094761,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.02373741480589947,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.00018850288509584165,
    -5.754195010082104e-05,
    1.6448448070728896e-05,
    -4.4167383584587505e-06,
    1.1173875391201037e-06,
    -2.670793853940612e-07,
    6.046995022541919e-08,
    -1.300025009986248e-08,
    2.6598237246823866e-09,
    -5.189795601635263e-10,
    9.675809035373237e-11,
    -1.726826291441556e-11,
    2.95505266312964e-12,
    -4.856446783111929e-13,
    7.676185498604936e-14,
    -1.1685332877993451e-14,
    1.715391285555133e-15,
    -2.431279846547955e-16,
    3.3307945188222384e-17,
    -4.4153416464793395e-18,
)
_I0_FAR = (
    0.8044904110141088,
    0.0033691164782556943,
    6.889758346916825e-05,
    2.8913705208347567e-06,
    2.0489185894690638e-07,
    2.266668990498178e-08,
    3.3962320257083865e-09,
    4.94060238822497e-10,
    1.1889147107846439e-11,
    -3.1499165279632416e-11,
    -1.3215811840447713e-11,
    -1.7941785315068062e-12,
    7.180124451383666e-13,
    3.8527783827421426e-13,
    1.54008621752141e-14,
    -4.150569347287222e-14,
    -9.554846698828307e-15,
    3.8116806693526224e-15,
    1.7725601330565263e-15,
    -3.425485619677219e-16,
    -2.8276239805165836e-16,
    3.461222867697461e-17,
    4.46562142029676e-17,
    -4.830504485944182e-18,
    -7.233180487874754e-18,
)
_I1_NEAR = (
    0.25258718644363365,
    -0.17641651835783406,
    0.1026436586898471,
    -0.05294598120809499,
    0.024726449030626516,
    -0.010564084894626197,
    0.004156422944312888,
    -0.0015135724506312532,
    0.0005122859561685758,
    -0.00016176081582589674,
    4.781565107550054e-05,
    -1.3273163656039436e-05,
    3.4702513081376785e-06,
    -8.568720264695455e-07,
    2.0032947535521353e-07,
    -4.445059128796328e-08,
    9.381537386495773e-09,
    -1.8872497517228294e-09,
    3.625590281552117e-10,
    -6.663489723502027e-11,
    1.1736186298890901e-11,
    -1.9839743977649436e-12,
    3.223793365945575e-13,
    -5.042185504727912e-14,
    7.600684294735408e-15,
    -1.1055969477353862e-15,
    1.5536319577362005e-16,
    -2.111421214358166e-17,
    2.7779141127610464e-18,
)
_I1_FAR = (
    0.7785762350182801,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.6314688468895196e-08,
    -3.835380385964237e-09,
    -5.589743462196584e-10,
    -1.8974958123505413e-11,
    3.2526035830154884e-11,
    1.4125807436613782e-11,
    2.0356285441470896e-12,
    -7.198551776245908e-13,
    -4.0835511110921974e-13,
    -2.1015418427726643e-14,
    4.272440016711951e-14,
    1.0420276984128802e-14,
    -3.8144030724370075e-15,
    -1.8803547755107825e-15,
    3.3082023109209285e-16,
    2.96262899764595e-16,
    -3.209525921993424e-17,
    -4.6503053684893586e-17,
    4.414348323071708e-18,
    7.517296310842105e-18,
)
_K0_NEAR = (
    -0.5353273932339028,
    0.3442898999246285,
    0.0359799365153615,
    0.001264615411446926,
    2.286212103119452e-05,
    2.5347910790261494e-07,
    1.904516377220209e-09,
    1.0349695257633842e-11,
    4.25981614279661e-14,
    1.374465435613523e-16,
)
_K0_FAR = (
    2.4403030820659555,
    -0.0314481013119645,
    0.0015698838857300533,
    -0.00012849549581627802,
    1.39498137188765e-05,
    -1.8317555227191195e-06,
    2.766813639445015e-07,
    -4.660489897687948e-08,
    8.574034017414225e-09,
    -1.69753450938906e-09,
    3.577397281400301e-10,
    -7.957489244477107e-11,
    1.8559491149547177e-11,
    -4.514597883373944e-12,
    1.140340588208475e-12,
    -2.9800969231727303e-13,
    8.032890775363575e-14,
    -2.2275133269916698e-14,
    6.3400764774050706e-15,
    -1.848593377343779e-15,
    5.512055978524319e-16,
    -1.678231096805412e-16,
    5.2103915050390274e-17,
    -1.6475804301524212e-17,
    5.300433772686263e-18,
)
_K1_NEAR = (
    1.5253002273389478,
    -0.3531559607765449,
    -0.12261118082265715,
    -0.006975723859639864,
    -0.0001730288957513052,
    -2.4334061415659684e-06,
    -2.213387630734726e-08,
    -1.4114883926335278e-10,
    -6.666901694199329e-13,
    -2.427449850519366e-15,
    -7.023863479386288e-18,
)
_K1_FAR = (
    2.7206261904844427,
    0.10392373657681724,
    -0.002857816859622779,
    0.00019521551847135162,
    -1.936197974166083e-05,
    2.406484947837217e-06,
    -3.5019606030878126e-07,
    5.7410841254500495e-08,
    -1.0345762465678097e-08,
    2.015049755197033e-09,
    -4.1903547593418965e-10,
    9.218315187605006e-11,
    -2.1299678384275683e-11,
    5.13963967348173e-12,
    -1.2891739609510289e-12,
    3.3484196660784293e-13,
    -8.976705182324994e-14,
    2.4771544244813043e-14,
    -7.019837090418314e-15,
    2.038703165624334e-15,
    -6.057047248373319e-16,
    1.838093544366639e-16,
    -5.689462558442859e-17,
    1.7940508731475592e-17,
    -5.756744483665017e-18,
)

# Airy's function for x above 2.09, in 1 / zeta, and below -2.09, in 1 / zeta^2.

_AIRY_ABOVE = Rational(
    (
        0.346538101525629,
        12.007595273964581,
        76.27960536152345,
        168.08922493463058,
        159.75639135016442,
        70.53609068404442,
        14.026469116338967,
        1.0,
    ),
    (
        0.5675945326387702,
        14.75625625848472,
        84.51389701414746,
        177.31808814540045,
        164.2346928715297,
        71.47784008255756,
        14.095913560783403,
        1.0,
    ),
)
_AIRY_SINE = Rational(
    (
        -0.1316963234183318,
        -0.6264565444319123,
        -0.6931580360369335,
        -0.2797799815451191,
        -0.04919001326095003,
        -0.004062659235948854,
        -0.0001592764962392621,
        -2.776491081552329e-06,
        -1.6778769848911465e-08,
    ),
    (
        13.356042070655324,
        32.682503279522464,
        26.736704094149957,
        9.187074029072596,
        1.4752914677166642,
        0.11568717379518804,
        0.004402916416152112,
        7.547203482874142e-05,
        4.5185009297058035e-07,
    ),
)
_AIRY_COSINE = Rational(
    (
        0.01973399320916857,
        0.39110302961568827,
        1.0657989759959559,
        0.9391692298166502,
        0.35146565610554764,
        0.06338889196289255,
        0.005858041130483885,
        0.000282851600836737,
        6.98793669997261e-06,
        8.117892395543892e-08,
        3.415517847659236e-10,
    ),
    (
        9.30892908077442,
        19.835292871831214,
        15.564662893286462,
        5.476860694229755,
        0.9542936116189619,
        0.08645808263523921,
        0.004126565238242226,
        0.00010125908511650914,
        1.1716673321441352e-06,
        4.9183457006293e-09,
    ),
)


# -- J and Y -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Order:
    j_near: Rational
    j_zeros: tuple[float, float]
    """Squares of its first two."""
    y_near: Rational
    modulus: Rational
    phase: Rational
    turn: float


_ORDER_0 = _Order(
    _J0_NEAR,
    (5.78318596294678452118, 30.4712623436620863991),
    _Y0_NEAR,
    _MODULUS_0,
    _PHASE_0,
    math.pi / 4,
)
_ORDER_1 = _Order(
    _J1_NEAR,
    (14.6819706421238932572, 49.2184563216946036703),
    _Y1_NEAR,
    _MODULUS_1,
    _PHASE_1,
    3 * math.pi / 4,
)


def _j_near(b: Builder, square: Tensor, order: _Order) -> Tensor:
    """J(x) for x up to 5, divided by x for order 1."""
    zeros = b.Mul(b.Sub(square, order.j_zeros[0]), b.Sub(square, order.j_zeros[1]))
    return b.Mul(zeros, series.rational(b, square, order.j_near))


def _far(b: Builder, x: Tensor, order: _Order, *, second_kind: bool) -> Tensor:
    """J(x) or Y(x) for x from 5 on: a wave whose height falls."""
    inverse = b.Div(5, x)
    square = b.Mul(inverse, inverse)
    modulus = series.rational(b, square, order.modulus)
    phase = b.Mul(inverse, series.rational(b, square, order.phase))
    angle = b.Sub(x, order.turn)
    sine, cosine = b.Sin(angle), b.Cos(angle)
    if second_kind:
        wave = b.Add(b.Mul(modulus, sine), b.Mul(phase, cosine))
    else:
        wave = b.Sub(b.Mul(modulus, cosine), b.Mul(phase, sine))
    return b.Div(b.Mul(wave, math.sqrt(2 / math.pi)), b.Sqrt(x))


def _j0(b: Builder, x: Tensor) -> Tensor:
    x = b.Abs(x)
    near = _j_near(b, b.Mul(x, x), _ORDER_0)
    return b.Where(b.LessOrEqual(x, 5), near, _far(b, x, _ORDER_0, second_kind=False))


def _j1(b: Builder, x: Tensor) -> Tensor:
    near = b.Mul(x, _j_near(b, b.Mul(x, x), _ORDER_1))
    magnitude = b.Abs(x)
    far = b.Mul(b.Sign(x), _far(b, magnitude, _ORDER_1, second_kind=False))
    return b.Where(b.LessOrEqual(magnitude, 5), near, far)


def _y0(b: Builder, x: Tensor) -> Tensor:
    square = b.Mul(x, x)
    logarithm = b.Mul(b.Log(x), 2 / math.pi)
    product = b.Mul(logarithm, _j_near(b, square, _ORDER_0))
    near = b.Add(series.rational(b, square, _Y0_NEAR), product)
    return b.Where(b.LessOrEqual(x, 5), near, _far(b, x, _ORDER_0, second_kind=True))


def _y1(b: Builder, x: Tensor) -> Tensor:
    square = b.Mul(x, x)
    product = b.Mul(b.Log(x), b.Mul(x, _j_near(b, square, _ORDER_1)))
    singular = b.Mul(b.Sub(product, b.Reciprocal(x)), 2 / math.pi)
    near = b.Add(b.Mul(x, series.rational(b, square, _Y1_NEAR)), singular)
    near = b.Where(b.Equal(x, 0), -math.inf, near)
    return b.Where(b.LessOrEqual(x, 5), near, _far(b, x, _ORDER_1, second_kind=True))


def _spherical_j0(b: Builder, x: Tensor) -> Tensor:
    terms = [(-1) ** k / math.factorial(2 * k + 1) for k in reversed(range(7))]
    near = series.polynomial(b, b.Mul(x, x), terms)
    far = b.Where(b.IsInf(x), 0, b.Div(b.Sin(x), x))
    return b.Where(b.Less(b.Abs(x), 0.5), near, far)


# -- I and K -----------------------------------------------------------------------------------


def _i0e(b: Builder, x: Tensor) -> Tensor:
    x = b.Abs(x)
    near = series.chebyshev(b, b.Sub(b.Div(x, 4), 1), _I0_NEAR)
    return b.Where(b.LessOrEqual(x, 8), near, _i_far(b, x, _I0_FAR))


def _i1e(b: Builder, x: Tensor) -> Tensor:
    magnitude = b.Abs(x)
    near = b.Mul(x, series.chebyshev(b, b.Sub(b.Div(magnitude, 4), 1), _I1_NEAR))
    far = b.Mul(b.Sign(x), _i_far(b, magnitude, _I1_FAR))
    return b.Where(b.LessOrEqual(magnitude, 8), near, far)


def _i_far(b: Builder, x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    place = b.Sub(b.Div(16, x), 1)
    return b.Div(series.chebyshev(b, place, coefficients), b.Sqrt(x))


def i0(b: Builder, x: Tensor) -> Tensor:
    return b.Mul(b.Exp(b.Abs(x)), _i0e(b, x))


def _i1(b: Builder, x: Tensor) -> Tensor:
    return b.Mul(b.Exp(b.Abs(x)), _i1e(b, x))


def _k0_near(b: Builder, x: Tensor) -> Tensor:
    smooth = series.chebyshev(b, b.Sub(b.Mul(b.Mul(x, x), 0.5), 1), _K0_NEAR)
    return b.Sub(smooth, b.Mul(b.Log(b.Mul(x, 0.5)), _i_near(b, x, _I0_NEAR)))


def _k1_near(b: Builder, x: Tensor) -> Tensor:
    smooth = series.chebyshev(b, b.Sub(b.Mul(b.Mul(x, x), 0.5), 1), _K1_NEAR)
    product = b.Mul(b.Log(b.Mul(x, 0.5)), b.Mul(x, _i_near(b, x, _I1_NEAR)))
    return b.Where(b.Equal(x, 0), math.inf, b.Add(product, b.Div(smooth, x)))


def _i_near(b: Builder, x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    scaled = series.chebyshev(b, b.Sub(b.Div(x, 4), 1), coefficients)
    return b.Mul(b.Exp(x), scaled)


def _k(near: Unary, far: tuple[float, ...], *, scaled: bool) -> Unary:
    def write(b: Builder, x: Tensor) -> Tensor:
        below = near(b, x)
        above = b.Div(series.chebyshev(b, b.Sub(b.Div(4, x), 1), far), b.Sqrt(x))
        if scaled:
            below = b.Mul(below, b.Exp(x))
        else:
            above = b.Mul(above, b.Exp(b.Neg(x)))
        return b.Where(b.LessOrEqual(x, 2), below, above)

    return write


# -- Airy --------------------------------------------------------------------------------------


def _airy_ai(b: Builder, x: Tensor) -> Tensor:
    magnitude = b.Abs(x)
    zeta = b.Mul(b.Mul(magnitude, b.Sqrt(magnitude)), 2 / 3)
    inverse = b.Reciprocal(zeta)
    height = b.Div(1 / math.sqrt(math.pi), b.Sqrt(b.Sqrt(magnitude)))
    above = b.Div(series.rational(b, inverse, _AIRY_ABOVE), b.Mul(b.Exp(zeta), 2))
    square = b.Mul(inverse, inverse)
    sine = b.Add(b.Mul(square, series.rational(b, square, _AIRY_SINE)), 1)
    cosine = b.Mul(inverse, series.rational(b, square, _AIRY_COSINE))
    angle = b.Add(zeta, math.pi / 4)
    below = b.Sub(b.Mul(b.Sin(angle), sine), b.Mul(b.Cos(angle), cosine))
    outer = b.Mul(height, b.Where(b.Less(x, 0), below, above))
    result = b.Where(b.And(b.GreaterOrEqual(x, -2.09), b.Less(x, 2.09)), _airy_near(b, x), outer)
    return b.Where(b.IsInf(x), math.nan, result)


def _airy_near(b: Builder, x: Tensor) -> Tensor:
    """Maclaurin's series: one in x^3, and one of that kind times x."""
    first, second = [1.0], [1.0]
    for k in range(1, 14):
        first.append(first[-1] / ((3 * k - 1) * 3 * k))
        second.append(second[-1] / (3 * k * (3 * k + 1)))
    cube = b.Mul(b.Mul(x, x), x)
    even = series.polynomial(b, cube, [0.355028053887817239260 * c for c in reversed(first)])
    odd = series.polynomial(b, cube, [0.258819403792806798405 * c for c in reversed(second)])
    return b.Sub(even, b.Mul(x, odd))


_OF_SELF: dict[str, Unary] = {
    "i0": i0,
    "special_i0e": _i0e,
    "special_i1": _i1,
    "special_i1e": _i1e,
    "special_modified_bessel_i0": i0,
    "special_modified_bessel_i1": _i1,
    "special_modified_bessel_k0": _k(_k0_near, _K0_FAR, scaled=False),
    "special_modified_bessel_k1": _k(_k1_near, _K1_FAR, scaled=False),
    "special_bessel_j0": _j0,
    "special_bessel_j1": _j1,
    "special_bessel_y0": _y0,
    "special_bessel_y1": _y1,
}
_OF_X: dict[str, Unary] = {
    "special_airy_ai": _airy_ai,
    "special_scaled_modified_bessel_k0": _k(_k0_near, _K0_FAR, scaled=True),
    "special_scaled_modified_bessel_k1": _k(_k1_near, _K1_FAR, scaled=True),
    "special_spherical_bessel_j0": _spherical_j0,
}
"""Whose schemas call their argument x."""


def _register_of_x(name: str, function: Unary) -> None:
    @lowering(f"aten::{name}")
    def of_x(b: Builder, x: Tensor) -> Tensor:
        return elementwise.in_floats(b, function, x)


for _name, _function in _OF_SELF.items():
    elementwise.lowering_in_floats(f"aten::{_name}")(_function)
for _name, _function in _OF_X.items():
    _register_of_x(_name, _function)
