#include "train/run/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "base/files.h"
#include "base/secret.h"

namespace muster::train {

namespace {

constexpr std::array<char, 8> kMagic{'M', 'U', 'S', 'T', 'C', 'K', 'P', '3'};
constexpr std::size_t kDigestBytes = 32;
constexpr std::uint64_t kLeastNumbers = 11;  // in a head, without buckets
constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 20U;
constexpr std::uint64_t kMostText = std::uint64_t{1} << 20U;
constexpr const char* kPrefix = "step-";

using Digest = std::array<unsigned char, kDigestBytes>;

// The head: numbers of 64 bits, of which the first says how many there are. The text of the run is
// behind it.
std::vector<std::uint64_t> HeadOf(const CheckpointPart& part) {
  std::vector<std::uint64_t> head{0,
                                  static_cast<std::uint64_t>(part.step),
                                  part.view.generation,
                                  part.view.first,
                                  static_cast<std::uint64_t>(part.columns),
                                  static_cast<std::uint64_t>(part.column),
                                  static_cast<std::uint64_t>(part.parts),
                                  static_cast<std::uint64_t>(part.part),
                                  static_cast<std::uint64_t>(part.state_floats),
                                  part.run.size(),
                                  part.values.size()};
  for (const auto& bucket : part.buckets) {
    head.push_back(bucket.first);
    head.push_back(bucket.last);
  }
  head[0] = head.size();
  return head;
}

class Hash {
 public:
  Hash() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr);
  }
  void Add(std::span<const std::byte> bytes) {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  Digest Take() {
    Digest out{};
    EVP_DigestFinal_ex(context_.get(), out.data(), nullptr);
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

class File {
 public:
  File(std::string path, int flags) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), flags | O_CLOEXEC, 0600);
    if (fd_ < 0) reason_ = errno;
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  // Everything counts into the digest.
  void Write(std::span<const std::byte> bytes) {
    hash_.Add(bytes);
    WriteAlone(bytes);
  }
  void WriteAlone(std::span<const std::byte> bytes) {
    while (reason_ == 0 && !bytes.empty()) {
      const auto count = ::write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) reason_ = errno;
      if (count >= 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }
  bool Read(std::span<std::byte> bytes) {
    const auto whole = bytes;
    while (reason_ == 0 && !bytes.empty()) {
      const auto count = ::read(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    hash_.Add(whole);
    return reason_ == 0;
  }
  void Sync() {
    if (reason_ == 0 && ::fsync(fd_) != 0) reason_ = errno;
  }
  Digest digest() { return hash_.Take(); }
  int reason() const { return reason_; }

 private:
  std::string path_;
  int fd_ = -1;
  int reason_ = 0;
  Hash hash_;
};

std::string NameOf(std::int64_t step) { return fmt::format("{}{:012}", kPrefix, step); }

// What the files of a view begin with.
std::string PrefixOf(const CheckpointView& view) {
  return fmt::format("{}-{:016x}.", view.generation, view.first);
}

// "7-0123456789abcdef.0-of-2"; of columns after the first "7-0123456789abcdef.column-3-0-of-2".
std::string FileOf(const CheckpointView& view, int column, int part, int parts) {
  return fmt::format("{}{}{}-of-{}", PrefixOf(view),
                     column == 0 ? "" : fmt::format("column-{}-", column), part, parts);
}

// Parts that are there: by column, by how many it has. Workers of one view may have begun with
// parts of another number, which they still hold.
using Parts = std::map<int, std::map<int, std::set<int>>>;

std::map<CheckpointView, Parts> Find(const std::string& folder) {
  std::map<CheckpointView, Parts> out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string name = entry.path().filename();
    const auto dot = name.find('.');
    if (dot == 0 || dot == std::string::npos) continue;
    CheckpointView view;
    int column = 0, part = 0, parts = 0;
    const char* rest = name.c_str() + dot + 1;
    const bool ours =
        std::sscanf(name.c_str(), "%" SCNu64 "-%" SCNx64 ".", &view.generation, &view.first) == 2 &&
        (std::sscanf(rest, "column-%d-%d-of-%d", &column, &part, &parts) == 3 ||
         std::sscanf(rest, "%d-of-%d", &part, &parts) == 2);
    if (ours && name == FileOf(view, column, part, parts)) out[view][column][parts].insert(part);
  }
  return out;
}

bool AllOf(const std::set<int>& there, int parts) {
  return parts > 0 && static_cast<int>(there.size()) == parts && *there.begin() == 0 &&
         *there.rbegin() == parts - 1;
}

std::size_t ValuesOf(const CheckpointPart& part) {
  std::size_t floats = 0;
  for (const auto& bucket : part.buckets) floats += PartOf(bucket, part.parts, part.part).size();
  return floats * static_cast<std::size_t>(1 + part.state_floats);
}

Result<CheckpointPart> ReadPart(const std::string& path) {
  const auto unsound = [&path](const char* why) {
    return Fail(ErrorCode::kInvalid, path + ": " + why, "an older checkpoint is used instead");
  };
  File file(path, O_RDONLY);
  if (file.reason() != 0) return tl::unexpected(PathError(path, file.reason()));
  std::array<char, kMagic.size()> magic{};
  std::uint64_t count = 0;
  if (!file.Read(std::as_writable_bytes(std::span(magic))) || magic != kMagic) {
    return unsound("this is no checkpoint of Muster, or of another version");
  }
  if (!file.Read(std::as_writable_bytes(std::span(&count, 1))) || count < kLeastNumbers ||
      count > kMostNumbers) {
    return unsound("it is cut off");
  }
  std::vector<std::uint64_t> head(count - 1);
  if (!file.Read(std::as_writable_bytes(std::span(head)))) return unsound("it is cut off");
  CheckpointPart part;
  part.step = static_cast<std::int64_t>(head[0]);
  part.view = {head[1], head[2]};
  part.columns = static_cast<int>(head[3]);
  part.column = static_cast<int>(head[4]);
  part.parts = static_cast<int>(head[5]);
  part.part = static_cast<int>(head[6]);
  part.state_floats = static_cast<int>(head[7]);
  const std::uint64_t text = head[8], values = head[9];
  for (std::size_t i = kLeastNumbers - 1; i + 1 < head.size(); i += 2)
    part.buckets.push_back({head[i], head[i + 1]});
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) return tl::unexpected(PathError(path, errno));
  const auto bytes = kMagic.size() + count * 8 + text + values * sizeof(float) + kDigestBytes;
  const bool fits = text <= kMostText && values < static_cast<std::uint64_t>(facts.st_size) &&
                    bytes == static_cast<std::uint64_t>(facts.st_size) && part.parts > 0 &&
                    part.part >= 0 && part.part < part.parts && part.state_floats >= 0 &&
                    ValuesOf(part) == values;
  if (!fits) return unsound("it is cut off");
  part.run.resize(text);
  if (!file.Read(std::as_writable_bytes(std::span(part.run)))) return unsound("it is cut off");
  part.values.resize(values);
  if (!file.Read(std::as_writable_bytes(std::span(part.values)))) return unsound("it is cut off");
  const Digest computed = file.digest();
  Digest written{};
  if (!file.Read(std::as_writable_bytes(std::span(written))) || computed != written) {
    return unsound("its bytes are not those that were written");
  }
  return part;
}

using Take = std::function<Result<void>(const CheckpointPart&)>;

// All parts of all columns of one view.
Result<void> ReadView(const std::string& folder, const CheckpointView& view, const Parts& found,
                      const Take& take) {
  std::optional<CheckpointPart> first;  // without its values
  const auto read_column = [&](int column, int parts) -> Result<void> {
    for (int part = 0; part < parts; ++part) {
      const auto path = folder + "/" + FileOf(view, column, part, parts);
      auto one = ReadPart(path);
      if (!one) return tl::unexpected(one.error());
      const bool meant =
          one->view == view && one->column == column && one->part == part && one->parts == parts &&
          (!first ||
           (one->step == first->step && one->columns == first->columns && one->run == first->run));
      if (!meant) return Fail(ErrorCode::kInvalid, path + " is of another checkpoint");
      if (auto taken = take(*one); !taken) return taken;
      if (first) continue;
      one->values.clear();
      first = std::move(*one);
    }
    return {};
  };
  for (int column = 0; column < (first ? first->columns : 1); ++column) {
    Result<void> read = Fail(ErrorCode::kNotFound, folder + " is no complete checkpoint");
    const auto counts = found.find(column);
    if (counts == found.end()) return read;
    for (const auto& [parts, there] : counts->second) {
      if (!read && AllOf(there, parts)) read = read_column(column, parts);
    }
    if (!read) return read;
  }
  return {};
}

}  // namespace

int CheckpointFolder::TryToWrite(const CheckpointPart& part) const {
  const std::string folder = path_ + "/" + NameOf(part.step);
  int reason = MakeFolders(folder);
  if (reason != 0) return reason;
  const std::string draft = folder + "/.draft-" + NewSecretHex(8);
  {
    File file(draft, O_WRONLY | O_CREAT | O_EXCL);
    file.Write(std::as_bytes(std::span(kMagic)));
    const auto head = HeadOf(part);
    file.Write(std::as_bytes(std::span(head)));
    file.Write(std::as_bytes(std::span(part.run)));
    file.Write(std::as_bytes(std::span(part.values)));
    const Digest digest = file.digest();
    file.WriteAlone(std::as_bytes(std::span(digest)));
    file.Sync();
    reason = file.reason();
  }
  const std::string path = folder + "/" + FileOf(part.view, part.column, part.part, part.parts);
  if (reason == 0 && ::rename(draft.c_str(), path.c_str()) != 0) reason = errno;
  if (reason == 0) return SyncFolder(folder);
  ::unlink(draft.c_str());
  return reason;
}

Result<void> CheckpointFolder::Write(const CheckpointPart& part) const {
  int reason = TryToWrite(part);
  const bool full = reason == ENOSPC || reason == EDQUOT;
  if (full) Prune(1, part.step);
  // A folder with nothing in it may have been removed by whoever tidies up, just before it was
  // used.
  if (full || reason == ENOENT) reason = TryToWrite(part);
  if (reason == 0) return {};
  const std::string folder = path_ + "/" + NameOf(part.step);
  ::rmdir(folder.c_str());  // unless others have written there
  return tl::unexpected(WriteError(folder, reason));
}

std::vector<std::pair<std::int64_t, std::string>> CheckpointFolder::Names() const {
  std::vector<std::pair<std::int64_t, std::string>> out;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(path_, failed)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    out.emplace_back(std::strtoll(name.c_str() + std::strlen(kPrefix), nullptr, 10), name);
  }
  std::ranges::sort(out, std::greater<>());
  return out;
}

Result<void> CheckpointFolder::Read(
    const std::string& name, const std::function<Result<void>(const CheckpointPart&)>& take) const {
  const std::string folder = path_ + "/" + name;
  Result<void> out = Fail(ErrorCode::kNotFound, folder + " is no complete checkpoint");
  bool refused = false;
  const Take one = [&](const CheckpointPart& part) {
    auto taken = take(part);
    refused = !taken;
    return taken;
  };
  const auto found = Find(folder);
  for (auto view = found.rbegin(); view != found.rend() && !out && !refused; ++view) {
    out = ReadView(folder, view->first, view->second, one);
  }
  return out;
}

bool CheckpointFolder::Complete(std::int64_t step, const CheckpointView& view, int columns) const {
  const auto found = Find(path_ + "/" + NameOf(step));
  const auto parts = found.find(view);
  if (parts == found.end()) return false;
  for (int column = 0; column < columns; ++column) {
    const auto counts = parts->second.find(column);
    const bool there =
        counts != parts->second.end() && std::ranges::any_of(counts->second, [](const auto& count) {
          return AllOf(count.second, count.first);
        });
    if (!there) return false;
  }
  return true;
}

bool CheckpointFolder::Sound(const std::string& name) const {
  return Read(name, [](const CheckpointPart& /*part*/) -> Result<void> { return {}; }).has_value();
}

std::optional<std::pair<std::string, std::int64_t>> CheckpointFolder::Newest() const {
  for (const auto& [step, name] : Names()) {
    if (Sound(name)) return std::pair(name, step);
  }
  return std::nullopt;
}

void CheckpointFolder::Prune(int keep, std::optional<std::int64_t> writing) const {
  int good = 0;
  for (const auto& [step, name] : Names()) {
    if (step == writing) continue;
    if (good < keep && Sound(name)) {
      ++good;
      continue;
    }
    const std::string folder = path_ + "/" + name;
    std::error_code failed;
    if (good > 0 || writing) {
      std::filesystem::remove_all(folder, failed);
    } else {
      ::rmdir(folder.c_str());  // if nothing is in it
    }
  }
}

void CheckpointFolder::Discard(std::int64_t step, const CheckpointView& view) const {
  const std::string folder = path_ + "/" + NameOf(step);
  const std::string prefix = PrefixOf(view);
  std::vector<std::string> files;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
  }
  for (const auto& file : files) ::unlink(file.c_str());
  ::rmdir(folder.c_str());
}

}  // namespace muster::train
