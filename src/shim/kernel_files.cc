#include "shim/kernel_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "shim/handle.h"

namespace muster::shim {

std::string ReadSmall(const std::string& path) {
  const Handle file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> block{};
  while (file) {
    const auto size = read(file.get(), block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(block.data(), static_cast<std::size_t>(size));
  }
  return text;
}

int WriteSmall(const std::string& path, std::string_view text) {
  const Handle file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file ? WriteAll(file.get(), text) : errno;
}

int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto size = write(fd, text.data(), text.size());
    if (size < 0 && errno != EINTR) return errno;
    if (size == 0) return ENOSPC;
    if (size > 0) text.remove_prefix(static_cast<std::size_t>(size));
  }
  return 0;
}

std::string Why(int reason) {
  std::string text = std::strerror(reason);
  // "No such file" but not "RPC failed": a word, not a name.
  if (text.size() > 1 && text[0] >= 'A' && text[0] <= 'Z' && (text[1] < 'A' || text[1] > 'Z')) {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

}  // namespace muster::shim
