#include "base/secret.h"

#include <sys/random.h>

#include <array>

#include "base/check.h"

namespace muster {

std::string NewSecretHex(std::size_t bytes) {
  constexpr std::array<char, 17> kDigits{"0123456789abcdef"};
  std::string out;
  out.reserve(2 * bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    unsigned char byte = 0;
    MUSTER_CHECK(getrandom(&byte, 1, 0) == 1, "the system has randomness");
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace muster
