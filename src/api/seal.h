// Seal: a text that a client carries for us without being able to read, change or make one.
//
// For cursors that stand at something their caller may not see. The key is made at the start and
// never leaves the process, so what was sealed before a restart is not understood after it.
// AES-256-GCM with a random nonce. Thread-safe.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

class Sealer {
 public:
  Sealer();
  std::string Seal(std::string_view text) const;  // letters and digits
  std::optional<std::string> Open(std::string_view sealed) const;

 private:
  std::array<unsigned char, 32> key_{};
};

}  // namespace muster::api
