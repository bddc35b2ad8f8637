#include "base/files.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace muster {

std::string ReadStream(std::istream& in, std::size_t most) {
  std::string text;
  std::string block(std::size_t{64} << 10, '\0');
  while (in && text.size() <= most) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    text.append(block, 0, static_cast<std::size_t>(in.gcount()));
  }
  return text;
}

Error PathError(const std::string& path, int reason) {
  const std::string message = "cannot read \"" + path + "\": " + std::strerror(reason);
  if (reason == EISDIR) return {ErrorCode::kInvalid, message, "name the files in it"};
  if (reason == ENOENT || reason == ENOTDIR) {
    return {ErrorCode::kNotFound, message, "check the path"};
  }
  return {ErrorCode::kDenied, message, "check who may read it"};
}

Result<std::string> ReadFile(const std::string& path, std::size_t most) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return tl::unexpected(PathError(path, EISDIR));
  }
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) return tl::unexpected(PathError(path, errno));
  auto text = ReadStream(in, most);
  if (in.bad()) return tl::unexpected(PathError(path, errno == 0 ? EIO : errno));
  return text;
}

}  // namespace muster
