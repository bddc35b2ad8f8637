#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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
  if (reason == EACCES || reason == EPERM) {
    return {ErrorCode::kDenied, message, "check who may read it"};
  }
  return {ErrorCode::kUnavailable, message, "check the disk, and try again"};
}

// A full disk is not a refusal, nor is one that fails for a while: who waits may get on.
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
    case EROFS:
      return {ErrorCode::kDenied, message, "it is read-only: name another place"};
    case EACCES:
    case EPERM:
      return {ErrorCode::kDenied, message, "check who may write there"};
    default:
      return {ErrorCode::kUnavailable, message, "check the disk, and try again"};
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

int SyncFolder(const std::string& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int reason = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  return reason == EINVAL ? 0 : reason;
}

int MakeFolders(const std::string& folder) {
  struct stat facts = {};
  if (::stat(folder.c_str(), &facts) == 0) return S_ISDIR(facts.st_mode) ? 0 : ENOTDIR;
  const auto last = folder.find_last_not_of('/');
  const auto slash = folder.substr(0, last + 1).rfind('/');
  const auto above =
      slash == std::string::npos ? "." : folder.substr(0, std::max<std::size_t>(slash, 1));
  if (const int reason = MakeFolders(above); reason != 0) return reason;
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return errno;
  return SyncFolder(above);
}

}  // namespace muster
