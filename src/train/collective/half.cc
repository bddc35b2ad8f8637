#include "train/collective/half.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <bit>
#include <cstddef>

namespace muster::train {
namespace {

#if defined(__x86_64__)
bool HasF16c() {
  static const bool has = [] {
    unsigned int a = 0, b = 0, c = 0, d = 0;  // not every compiler knows f16c by its name
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0 &&
           __builtin_cpu_supports("avx") > 0;
  }();
  return has;
}

// How many were done: a multiple of eight.
[[gnu::target("avx,f16c")]] std::size_t ToHalfWide(std::span<const float> from,
                                                   std::uint16_t* into) {
  std::size_t i = 0;
  for (; i + 8 <= from.size(); i += 8) {
    const __m128i halves =
        _mm256_cvtps_ph(_mm256_loadu_ps(from.data() + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into + i), halves);
  }
  return i;
}

[[gnu::target("avx,f16c")]] std::size_t FromHalfWide(std::span<const std::uint16_t> from,
                                                     float* into) {
  std::size_t i = 0;
  for (; i + 8 <= from.size(); i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from.data() + i));
    _mm256_storeu_ps(into + i, _mm256_cvtph_ps(halves));
  }
  return i;
}
#endif

}  // namespace

std::uint16_t HalfOf(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint32_t>((bits >> 16U) & 0x8000U);
  const std::uint32_t size = bits & 0x7FFFFFFFU;
  if (size > 0x7F800000U) {  // no number: stays one, quiet, with the bits that fit
    return static_cast<std::uint16_t>(sign | 0x7E00U | ((size >> 13U) & 0x3FFU));
  }
  if (size >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // rounds past 65504
  if (size < 0x33000001U) return static_cast<std::uint16_t>(sign);  // at most half of the least
  const std::uint32_t exponent = size >> 23U;
  const std::uint32_t mantissa = (size & 0x7FFFFFU) | 0x800000U;
  // Below 2^-14 the mantissa itself is shifted out; above, its leading one joins the exponent.
  const std::uint32_t shift = exponent < 113 ? 126 - exponent : 13;
  const std::uint32_t base = exponent < 113 ? 0 : (exponent - 113) << 10U;
  const std::uint32_t kept = mantissa >> shift;
  const std::uint32_t rest = mantissa & ((1U << shift) - 1);
  const std::uint32_t middle = 1U << (shift - 1);
  const std::uint32_t up = rest > middle || (rest == middle && (kept & 1U) != 0) ? 1 : 0;
  return static_cast<std::uint16_t>(sign | (base + kept + up));
}

float FloatOf(std::uint16_t half) {
  const auto sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U;
  const std::uint32_t exponent = (half >> 10U) & 0x1FU;
  const std::uint32_t mantissa = half & 0x3FFU;
  if (exponent == 0x1F) {
    const std::uint32_t quiet = mantissa != 0 ? 0x400000U : 0;
    return std::bit_cast<float>(sign | 0x7F800000U | quiet | (mantissa << 13U));
  }
  if (exponent == 0) {
    const float size = static_cast<float>(mantissa) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(size));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23U) | (mantissa << 13U));
}

void ToHalf(std::span<const float> from, std::uint16_t* into) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (HasF16c()) i = ToHalfWide(from, into);
#endif
  for (; i < from.size(); ++i) into[i] = HalfOf(from[i]);
}

void FromHalf(std::span<const std::uint16_t> from, float* into) {
  std::size_t i = 0;
#if defined(__x86_64__)
  if (HasF16c()) i = FromHalfWide(from, into);
#endif
  for (; i < from.size(); ++i) into[i] = FloatOf(from[i]);
}

}  // namespace muster::train
