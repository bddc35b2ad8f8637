#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace muster {

void CheckFailed(const char* expression, const char* file, int line, std::string_view message) {
  std::fprintf(stderr, "muster: broken invariant at %s:%d: %s (%.*s)\n", file, line, expression,
               static_cast<int>(message.size()), message.data());
  std::abort();
}

}  // namespace muster
