// Check: the assertion that stays on in production.
//
// For what cannot happen: a broken invariant of our own, never bad input. A failed check prints the
// expression, its place and the message, then aborts, because running on with a broken invariant
// would hand out GPUs twice. Costs one predictable branch.
#pragma once

#include <string_view>

namespace muster {

[[noreturn]] void CheckFailed(const char* expression, const char* file, int line,
                              std::string_view message);

}  // namespace muster

#define MUSTER_CHECK(expression, message)                              \
  do {                                                                 \
    if (!(expression)) [[unlikely]]                                    \
      ::muster::CheckFailed(#expression, __FILE__, __LINE__, message); \
  } while (false)
