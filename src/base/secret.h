// Secret: bytes that nobody can guess, from the kernel.
//
// For tokens and the like; whatever must be had again from a seed takes Random instead.
#pragma once

#include <cstddef>
#include <string>

namespace muster {

// In hex: twice as many characters as bytes.
std::string NewSecretHex(std::size_t bytes);

}  // namespace muster
