#include "api/log_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "model/fields.h"

namespace muster::api {
namespace {

constexpr int kMostNames = 16;
constexpr std::size_t kMostHeld = 8;
constexpr int kTries = 20;  // rotation takes a few renames
constexpr std::int64_t kSearchBytes = std::int64_t{4} << 20;
constexpr std::string_view kGap =
    "[muster: output is missing here: it was dropped by rotation before it was read]\n";

net::Fd Open(const std::string& path, struct stat& facts) {
  net::Fd handle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!handle.open() || ::fstat(handle.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  return handle;
}

std::int64_t BornNs(int handle) {
  struct statx facts {};
  const bool known = ::statx(handle, "", AT_EMPTY_PATH, STATX_BTIME, &facts) == 0 &&
                     (facts.stx_mask & STATX_BTIME) != 0;
  return known ? facts.stx_btime.tv_sec * 1'000'000'000 + facts.stx_btime.tv_nsec : 0;
}

constexpr std::string_view kNoPlace = "0";  // nothing was there

}  // namespace

std::int64_t LogReader::SizeOf(const File& file) {
  struct stat facts {};
  return ::fstat(file.handle.get(), &facts) == 0 ? std::min<std::int64_t>(facts.st_size, file.end)
                                                 : file.at;
}

bool LogReader::IsLatest(const std::string& path) const {
  struct stat facts {};
  return !files_.empty() && ::lstat(path.c_str(), &facts) == 0 &&
         facts.st_dev == files_.back().device && facts.st_ino == files_.back().inode;
}

// Names move up, so they are looked at upwards: a file that moves meanwhile is seen twice, never
// missed. A second rotation would mix up the order; then the newest name has changed, and a name
// that is missing between others is about to come back: both are looked at again.
std::vector<LogReader::File> LogReader::List() const {
  std::vector<File> found;
  for (int tries = 0; tries < kTries; ++tries) {
    found.clear();
    bool hole = false, missing = false;
    for (int i = 0; i < kMostNames; ++i) {
      struct stat facts {};
      net::Fd handle = Open(i == 0 ? path_ : fmt::format("{}.{}", path_, i), facts);
      if (!handle.open()) {
        if (missing) break;
        missing = true;
        continue;
      }
      hole = hole || missing;
      const bool twice = std::any_of(found.begin(), found.end(), [&](const File& file) {
        return file.device == facts.st_dev && file.inode == facts.st_ino;
      });
      const auto born_ns = BornNs(handle.get());
      if (!twice) found.push_back({std::move(handle), facts.st_dev, facts.st_ino, born_ns});
    }
    struct stat named {};
    const bool there = ::lstat(path_.c_str(), &named) == 0;
    if (!hole && (found.empty() ? !there : there && named.st_ino == found.front().inode)) break;
  }
  std::reverse(found.begin(), found.end());
  return found;
}

void LogReader::Look() {
  if (IsLatest(path_)) return;
  auto found = List();
  std::size_t first = 0;
  bool gap = false;
  if (!files_.empty()) {
    // Held open, so nothing else can have its number.
    const auto known = std::find_if(found.begin(), found.end(), [&](const File& file) {
      return file.device == files_.back().device && file.inode == files_.back().inode;
    });
    gap = known == found.end();
    if (!gap) first = static_cast<std::size_t>(known - found.begin()) + 1;
  }
  for (std::size_t i = first; i < found.size(); ++i) {
    found[i].gap = gap && i == first;
    files_.push_back(std::move(found[i]));
  }
  while (files_.size() > kMostHeld) {
    files_.erase(files_.begin() + 1);
    files_[1].gap = true;
  }
}

void LogReader::Freeze() {
  for (auto& file : files_) file.end = SizeOf(file);
}

void LogReader::SkipBefore(std::int64_t wall_ms) {
  while (!files_.empty()) {
    struct stat facts {};
    auto& file = files_.front();
    if (::fstat(file.handle.get(), &facts) != 0) return;
    const auto written_ms = facts.st_mtim.tv_sec * std::int64_t{1000} +
                            static_cast<std::int64_t>(facts.st_mtim.tv_nsec) / 1'000'000;
    if (written_ms >= wall_ms) return;
    if (files_.size() == 1) {  // kept: it is how the next one is recognised
      file.at = std::min<std::int64_t>(facts.st_size, file.end);
      return;
    }
    files_.pop_front();
  }
}

bool LogReader::SeekTail(std::int64_t lines) {
  if (files_.empty()) return true;
  if (!searching_) {
    searching_ = true;
    search_file_ = files_.size() - 1;
    search_at_ = SizeOf(files_.back());
  }
  const auto found = [&](std::int64_t at) {
    files_.erase(files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(search_file_));
    files_.front().at = at;
    return true;
  };
  if (lines == 0) return found(search_at_);
  std::string piece(64 << 10, '\0');
  for (std::int64_t looked = 0; looked < kSearchBytes;) {
    const auto& file = files_[search_file_];
    if (search_at_ <= file.at) {
      if (search_file_ == 0) return true;
      search_at_ = SizeOf(files_[--search_file_]);
      continue;
    }
    const auto want = std::min(search_at_ - file.at, static_cast<std::int64_t>(piece.size()));
    const auto from = search_at_ - want;
    if (::pread(file.handle.get(), piece.data(), static_cast<std::size_t>(want), from) != want) {
      return true;  // it has shrunk: show what there is
    }
    auto left = static_cast<std::size_t>(want);
    if (std::exchange(search_last_, false)) --left;
    while (const void* end = ::memrchr(piece.data(), '\n', left)) {
      left = static_cast<std::size_t>(static_cast<const char*>(end) - piece.data());
      if (++search_seen_ == lines) return found(from + static_cast<std::int64_t>(left) + 1);
    }
    search_at_ = from;
    looked += want;
  }
  return false;
}

std::string LogReader::Place() const {
  if (files_.empty()) return std::string(kNoPlace);
  std::size_t i = 0;  // not at the end of one that rotation may drop next
  while (i + 1 < files_.size() && files_[i].at >= SizeOf(files_[i]) && !files_[i + 1].gap) ++i;
  const auto& file = files_[i];
  return fmt::format("{}-{}-{}", file.inode, file.born_ns, file.at);
}

bool LogReader::SeekTo(std::string_view place) {
  if (place == kNoPlace) return true;
  std::array<std::int64_t, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto end = std::min(place.find('-'), place.size());
    const auto number = model::ParseWhole(std::string(place.substr(0, end)));
    if (!number || *number < 0 || (i == 2) != (end == place.size())) return false;
    numbers[i] = *number;
    place.remove_prefix(std::min(end + 1, place.size()));
  }
  const auto found = std::find_if(files_.begin(), files_.end(), [&](const File& file) {
    return static_cast<std::int64_t>(file.inode) == numbers[0] && file.born_ns == numbers[1] &&
           SizeOf(file) >= numbers[2];
  });
  if (found == files_.end()) {
    if (!files_.empty()) files_.front().gap = true;
    return true;
  }
  files_.erase(files_.begin(), found);
  files_.front().at = numbers[2];
  return true;
}

std::string LogReader::Read(std::size_t most) {
  while (!files_.empty()) {
    auto& file = files_.front();
    if (std::exchange(file.gap, false)) return std::string(kGap);
    const auto room = std::min(file.end - file.at, static_cast<std::int64_t>(most));
    if (room > 0) {
      std::string piece(static_cast<std::size_t>(room), '\0');
      const auto got = ::pread(file.handle.get(), piece.data(), piece.size(), file.at);
      if (got > 0) {
        file.at += got;
        piece.resize(static_cast<std::size_t>(got));
        return piece;
      }
    }
    // Nothing is written to a file any more once another has followed it.
    if (files_.size() == 1) return {};
    files_.pop_front();
  }
  return {};
}

std::int64_t LogReader::bytes() const {
  std::int64_t sum = 0;
  for (const auto& file : files_) sum += SizeOf(file);
  return sum;
}

}  // namespace muster::api
