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

// A full disk is not a refusal: who waits may find room.
Error WriteError(const std::string& path, int reason) {
  const std::string message = "cannot write \"" + path + "\": " + std::strerror(reason);
  switch (reason) {
    case EISDIR:
      return {ErrorCode::kInvalid, message, "name a file in it"};
    case ENOENT:
    case ENOTDIR:
      return {ErrorCode::kNotFound, message, "check the path"};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {ErrorCode::kUnavailable, message, "make room there, or name another place"};
    case EIO:
      return {ErrorCode::kUnavailable, message, "check the disk"};
    case EROFS:
      return {ErrorCode::kDenied, message, "it is read-only: name another place"};
    default:
      return {ErrorCode::kDenied, message, "check who may write there"};
  }
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
