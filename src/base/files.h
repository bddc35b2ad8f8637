// Files: reading a whole file, with an error that says what was wrong with it.
//
// A path that does not exist, may not be read or is a folder are three different errors, because
// three different people repair them. A file is read up to a bound and one byte more, so that the
// reader sees that it is too large without holding all of it.
#pragma once

#include <cstddef>
#include <istream>
#include <string>

#include "base/result.h"

namespace muster {

inline constexpr std::size_t kLargestFile = std::size_t{256} << 20;

std::string ReadStream(std::istream& in, std::size_t most = kLargestFile);
Result<std::string> ReadFile(const std::string& path, std::size_t most = kLargestFile);

// The error for a path on which a call failed with this errno.
Error PathError(const std::string& path, int reason);

}  // namespace muster
