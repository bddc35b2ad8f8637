#include "sim/trace/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

namespace muster::sim {
namespace {

tl::unexpected<Error> CannotOpen(const std::string& path, int error) {
  return Fail(ErrorCode::kNotFound, fmt::format("cannot open {}: {}", path, std::strerror(error)),
              "check the path");
}

Result<std::string> Unpack(gzFile file, const std::string& path, std::size_t most) {
  std::string out;
  std::array<char, 1 << 16> piece{};
  for (;;) {
    const int got = gzread(file, piece.data(), piece.size());
    if (got < 0) {
      int code = 0;
      const char* why = gzerror(file, &code);
      return Fail(
          ErrorCode::kInvalid,
          fmt::format("cannot read {}: {}", path, code == Z_ERRNO ? std::strerror(errno) : why),
          "the file is damaged");
    }
    if (got == 0) break;
    out.append(piece.data(), static_cast<std::size_t>(got));
    if (out.size() > most) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("{} has more than {} MiB of text", path, most >> 20),
                  "cut it into pieces");
    }
  }
  // A packed file that was cut off reads like one that ended.
  if (int code = 0; gzerror(file, &code) != nullptr && code == Z_BUF_ERROR) {
    return Fail(ErrorCode::kInvalid, fmt::format("{} ends in the middle of its packed data", path),
                "copy it again");
  }
  return out;
}

// One name after the other, each opened in the folder before it, so that none can be exchanged for
// a link in between.
Result<int> OpenWithin(const std::string& folder, const std::string& path, int flags) {
  int at = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return CannotOpen(folder, errno);
  std::string_view rest = path;
  while (!rest.empty()) {
    const std::string name(rest.substr(0, rest.find('/')));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (name.empty() || name == "." || name == "..") {
      ::close(at);
      return Fail(ErrorCode::kInvalid,
                  fmt::format("\"{}\" is no name in the folder of traces", path),
                  "names are relative to it, without `.` and `..`");
    }
    const int how = rest.empty() ? flags : O_RDONLY | O_DIRECTORY;
    const int next = ::openat(at, name.c_str(), how | O_NOFOLLOW | O_CLOEXEC);
    const int error = errno;
    ::close(at);
    if (next < 0 && error == ELOOP) {
      return Fail(ErrorCode::kDenied, fmt::format("{} is a link", path),
                  "links are not followed in the folder of traces: put the file itself there");
    }
    if (next < 0) return CannotOpen(path, error);
    at = next;
  }
  return at;
}

}  // namespace

TraceFiles TraceFiles::Within(std::string folder) {
  TraceFiles files;
  files.folder_ = std::move(folder);
  return files;
}

Result<int> TraceFiles::Open(const std::string& path, int flags) const {
  if (!folder_.empty()) return OpenWithin(folder_, path, flags);
  const int at = ::open(path.c_str(), flags | O_CLOEXEC);
  if (at < 0) return CannotOpen(path, errno);
  return at;
}

Result<std::string> TraceFiles::Read(const std::string& path) const {
  // A pipe that nobody writes to would hold up whoever serves others.
  const auto at = Open(path, folder_.empty() ? O_RDONLY : O_RDONLY | O_NONBLOCK);
  if (!at) return tl::unexpected(at.error());
  struct stat what {};
  const bool known = ::fstat(*at, &what) == 0;
  if (!known || S_ISDIR(what.st_mode) || (!folder_.empty() && !S_ISREG(what.st_mode))) {
    ::close(*at);
    return Fail(ErrorCode::kInvalid, fmt::format("cannot read {}: it is no plain file", path),
                "check the path");
  }
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzdopen(*at, "rb"), gzclose);
  if (!file) {
    ::close(*at);
    return Fail(ErrorCode::kInternal, fmt::format("cannot read {}: no memory", path));
  }
  return Unpack(file.get(), path, folder_.empty() ? kMostBytes : kMostBytesWithin);
}

std::string TraceFiles::Whole(const std::string& path) const {
  std::error_code ignored;
  return folder_.empty() ? std::filesystem::absolute(path, ignored).string() : path;
}

Result<void> TraceFiles::Check(const std::string& path) const {
  const auto at = Open(path, O_RDONLY | O_NONBLOCK);
  if (!at) return tl::unexpected(at.error());
  ::close(*at);
  return {};
}

Result<std::vector<std::string>> TraceFiles::Names(const std::string& folder) const {
  const auto at = Open(folder, O_RDONLY | O_DIRECTORY);
  if (!at) return tl::unexpected(at.error());
  const std::unique_ptr<DIR, int (*)(DIR*)> listed(::fdopendir(*at), ::closedir);
  if (!listed) {
    ::close(*at);
    return CannotOpen(folder, errno);
  }
  std::vector<std::string> names;
  while (const dirent* one = ::readdir(listed.get())) {
    if (std::string_view name = one->d_name; name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace muster::sim
