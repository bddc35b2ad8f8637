#include "shim/log_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "shim/kernel_files.h"

namespace muster::shim {

void LogWriter::Write(std::string_view bytes) {
  if (!Open()) return Lose(bytes.size());
  if (unsaid_ > 0) {
    if (!Recover(bytes)) Lose(bytes.size());
    return;
  }
  while (!bytes.empty()) {
    const auto room = static_cast<std::size_t>(std::max<std::int64_t>(file_.most_bytes - size_, 0));
    auto piece = bytes.substr(0, room);
    if (piece.size() < bytes.size()) {
      const auto end = piece.rfind('\n');
      if (end != std::string_view::npos) {
        piece = piece.substr(0, end + 1);
      } else if (size_ > 0 && !mid_line_) {
        piece = {};  // a line that may fit into the next file as a whole
      }
    }
    const auto written = Append(piece);
    bytes.remove_prefix(written);
    if (written < piece.size()) return Lose(bytes.size());
    if (!bytes.empty() && !Rotate()) return Lose(bytes.size());
  }
}

void LogWriter::Close() {
  if (unsaid_ > 0 && Open()) Recover({});
  handle_.Close();
}

bool LogWriter::Open() {
  if (handle_) return true;
  // The folder may belong to the worker's user and the shim to root: what is no plain file there
  // is not written to.
  Handle opened(open(file_.path.c_str(),
                     O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  struct stat facts {};
  if (!opened || fstat(opened.get(), &facts) != 0) {
    reason_ = errno;
    return false;
  }
  if (!S_ISREG(facts.st_mode)) {
    reason_ = EINVAL;
    return false;
  }
  if (file_.owner != facts.st_uid && file_.owner != static_cast<uid_t>(-1)) {
    [[maybe_unused]] const int ignored = fchown(opened.get(), file_.owner, file_.group);
  }
  size_ = facts.st_size;
  handle_ = std::move(opened);
  return true;
}

bool LogWriter::Rotate() {
  handle_.Close();
  const auto name = [&](int i) {
    return i == 0 ? file_.path : fmt::format("{}.{}", file_.path, i);
  };
  if (file_.files == 1) unlink(file_.path.c_str());
  for (int i = file_.files - 1; i > 0; --i) std::rename(name(i - 1).c_str(), name(i).c_str());
  mid_line_ = false;
  if (!Open()) return false;
  if (size_ < file_.most_bytes) return true;
  handle_.Close();  // it could not be moved away: better no output than a file without bound
  reason_ = EACCES;
  return false;
}

bool LogWriter::Recover(std::string_view bytes) {
  std::string text = fmt::format("{}[muster: {} bytes of output were lost here: {}]\n",
                                 mid_line_ ? "\n" : "", unsaid_, Why(reason_));
  text += bytes;
  if (size_ > 0 && size_ + static_cast<std::int64_t>(text.size()) > file_.most_bytes && !Rotate()) {
    return false;
  }
  const auto before = size_;
  const bool was_mid_line = mid_line_;
  if (Append(text) == text.size()) {
    unsaid_ = 0;
    return true;
  }
  // Not half a line: it is said when there is room for it together with what follows.
  if (ftruncate(handle_.get(), before) == 0) size_ = before;
  mid_line_ = was_mid_line;
  return false;
}

std::size_t LogWriter::Append(std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto size = write(handle_.get(), bytes.data() + done, bytes.size() - done);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) {
      reason_ = size < 0 ? errno : ENOSPC;
      break;
    }
    done += static_cast<std::size_t>(size);
  }
  size_ += static_cast<std::int64_t>(done);
  if (done > 0) mid_line_ = bytes[done - 1] != '\n';
  return done;
}

void LogWriter::Lose(std::size_t bytes) {
  dropped_ += static_cast<std::int64_t>(bytes);
  unsaid_ += static_cast<std::int64_t>(bytes);
}

}  // namespace muster::shim
