#include "train/members/folder_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "base/files.h"
#include "base/secret.h"

namespace muster::train {

Result<std::string> FolderStore::Draft(const std::string& value, bool durable) const {
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    return tl::unexpected(WriteError(folder_, errno));
  }
  std::string path = folder_ + "/.draft-" + NewSecretHex(8);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return tl::unexpected(WriteError(path, errno));
  errno = ENOSPC;  // what stands when less is written than was asked for
  const bool kept = ::write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size()) &&
                    (!durable || ::fsync(fd) == 0);
  const int reason = errno;
  ::close(fd);
  if (!kept) {
    ::unlink(path.c_str());
    return tl::unexpected(WriteError(path, reason));
  }
  return path;
}

Result<std::string> FolderStore::Claim(const std::string& key, const std::string& value) {
  const std::string path = folder_ + "/" + key;
  int failed = EEXIST;
  if (::access(path.c_str(), F_OK) != 0) {
    auto draft = Draft(value, true);
    if (!draft) return draft;
    failed = ::link(draft->c_str(), path.c_str()) == 0 ? 0 : errno;
    ::unlink(draft->c_str());
  }
  if (failed != 0 && failed != EEXIST) return tl::unexpected(WriteError(path, failed));
  // Also what another one claimed: it may have been killed before it came to this.
  const int unsynced = durable_ ? SyncFolder(folder_) : 0;
  if (unsynced != 0) return tl::unexpected(WriteError(folder_, unsynced));
  if (failed == 0) return value;
  return ReadFile(path);
}

Result<void> FolderStore::Write(const std::string& key, const std::string& value) {
  const auto draft = Draft(value, false);
  if (!draft) return tl::unexpected(draft.error());
  const std::string path = folder_ + "/" + key;
  if (::rename(draft->c_str(), path.c_str()) == 0) return {};
  const int reason = errno;
  ::unlink(draft->c_str());
  return tl::unexpected(WriteError(path, reason));
}

Result<std::optional<std::string>> FolderStore::Read(const std::string& key) {
  auto text = ReadFile(folder_ + "/" + key);
  if (text) return std::move(*text);
  if (text.error().code == ErrorCode::kNotFound) return std::nullopt;
  return tl::unexpected(text.error());
}

}  // namespace muster::train
