// Kernel files: reading and writing small files of /proc, /sys and the spool.
//
// Plain system calls: streams would double the size of the program. A reason is an errno, 0 is
// success; Why() makes it a part of a sentence.
#pragma once

#include <string>
#include <string_view>

namespace muster::shim {

// The whole file; empty when it cannot be read, which for these files means the same.
std::string ReadSmall(const std::string& path);

// Into a file that exists. Returns 0 or the reason.
int WriteSmall(const std::string& path, std::string_view text);

// All of it, or the reason.
int WriteAll(int fd, std::string_view text);

std::string Why(int reason);  // "no such file or directory"

}  // namespace muster::shim
