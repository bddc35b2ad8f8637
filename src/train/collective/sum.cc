#include "train/collective/sum.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace muster::train {
namespace {

// So many floats at a time; loads and stores need no alignment.
constexpr std::size_t kWide = 8;
using Wide __attribute__((vector_size(kWide * sizeof(float)))) = float;

// into += from, where both are in registers already or will be.
[[gnu::always_inline]] inline void Add(Wide& into, const float* from) {
  Wide more;
  std::memcpy(&more, from, sizeof more);
  into += more;
}

[[gnu::always_inline]] inline void SumTwo(float* into, const float* a, const float* b,
                                          std::size_t count) {
  std::size_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    Wide sum;
    std::memcpy(&sum, a + i, sizeof sum);
    Add(sum, b + i);
    std::memcpy(into + i, &sum, sizeof sum);
  }
  for (; i < count; ++i) into[i] = a[i] + b[i];
}

[[gnu::always_inline]] inline void SumFour(float* into, const float* const* p, std::size_t count) {
  std::size_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    Wide sum;
    std::memcpy(&sum, p[0] + i, sizeof sum);
    Add(sum, p[1] + i);
    Add(sum, p[2] + i);
    Add(sum, p[3] + i);
    std::memcpy(into + i, &sum, sizeof sum);
  }
  for (; i < count; ++i) into[i] = ((p[0][i] + p[1][i]) + p[2][i]) + p[3][i];
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void SumTwoAvx(float* into, const float* a, const float* b,
                                       std::size_t count) {
  SumTwo(into, a, b, count);
}
[[gnu::target("avx2")]] void SumFourAvx(float* into, const float* const* p, std::size_t count) {
  SumFour(into, p, count);
}
bool HasAvx() {
  static const bool has = __builtin_cpu_supports("avx2") > 0;
  return has;
}
#endif

void Two(float* into, const float* a, const float* b, std::size_t count) {
#if defined(__x86_64__)
  if (HasAvx()) return SumTwoAvx(into, a, b, count);
#endif
  SumTwo(into, a, b, count);
}

void Four(float* into, const float* const* p, std::size_t count) {
#if defined(__x86_64__)
  if (HasAvx()) return SumFourAvx(into, p, count);
#endif
  SumFour(into, p, count);
}

constexpr std::size_t kBlock = 4096;             // floats that stay in the first cache
constexpr std::size_t kPast = (1U << 20U) / 4U;  // from so many on a copy would only fill caches

#if defined(__x86_64__)
void CopyPast(float* into, const float* from, std::size_t count) {
  std::size_t i = 0;
  for (; i < count && reinterpret_cast<std::uintptr_t>(into + i) % 16 != 0; ++i) into[i] = from[i];
  for (; i + 4 <= count; i += 4) _mm_stream_ps(into + i, _mm_loadu_ps(from + i));
  for (; i < count; ++i) into[i] = from[i];
}
#endif

}  // namespace

void AddTo(std::span<float> into, const float* from) {
  Two(into.data(), into.data(), from, into.size());
}

void SumOf(std::span<float> into, std::span<const float* const> parts) {
  if (parts.size() == 1) {
    if (parts[0] != into.data()) std::copy_n(parts[0], into.size(), into.data());
    return;
  }
  if (parts.size() == 2) return Two(into.data(), parts[0], parts[1], into.size());
  if (parts.size() == 4) return Four(into.data(), parts.data(), into.size());
  // By blocks, through memory of our own: `into` may be a part that is not first.
  alignas(64) float block[kBlock];
  for (std::size_t at = 0; at < into.size(); at += kBlock) {
    const std::size_t count = std::min(kBlock, into.size() - at);
    Two(block, parts[0] + at, parts[1] + at, count);
    for (std::size_t p = 2; p < parts.size(); ++p) Two(block, block, parts[p] + at, count);
    std::copy_n(block, count, into.data() + at);
  }
}

void CopyFromEnd(std::span<float> into, const float* from) {
  constexpr std::size_t kPiece = 16 * kBlock;
  for (std::size_t end = into.size(); end > 0;) {
    const std::size_t begin = end > kPiece ? end - kPiece : 0;
#if defined(__x86_64__)
    if (into.size() >= kPast) {
      CopyPast(into.data() + begin, from + begin, end - begin);
      end = begin;
      continue;
    }
#endif
    std::copy_n(from + begin, end - begin, into.data() + begin);
    end = begin;
  }
#if defined(__x86_64__)
  _mm_sfence();  // what follows is seen after what was copied
#endif
}

}  // namespace muster::train
