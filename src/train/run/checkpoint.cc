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

// What the files of all versions of the format have in common: they begin with these, of which the
// last is the version, and end with a digest of all before it.
constexpr std::array<char, 8> kMagic{'M', 'U', 'S', 'T', 'C', 'K', 'P', '3'};
constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kPieceBytes = std::size_t{1} << 20U;
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
      if (count < 0) reason_ = errno;
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

// What an error says of a checkpoint: it is not whole, and never will be. Where a file could not be
// opened or read just now nothing is known.
bool IsTorn(const Error& error) {
  return error.code == ErrorCode::kInvalid || error.code == ErrorCode::kNotFound;
}

// Also one of another version goes where a newer one is good.
bool CanGo(const Error& error, bool newer) {
  return IsTorn(error) || (newer && error.code == ErrorCode::kConflict);
}

// An error: there may be more.
Result<std::vector<std::string>> FilesIn(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code failed;
  std::filesystem::directory_iterator at(folder, failed);
  for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
    out.push_back(at->path().filename());
  }
  if (failed) return tl::unexpected(PathError(folder, failed.value()));
  return out;
}

// Parts that are there: by column, by how many it has. Workers of one view may have begun with
// parts of another number, which they still hold.
using Parts = std::map<int, std::map<int, std::set<int>>>;

Result<std::map<CheckpointView, Parts>> Find(const std::string& folder) {
  std::map<CheckpointView, Parts> out;
  const auto names = FilesIn(folder);
  if (!names) return tl::unexpected(names.error());
  for (const auto& name : *names) {
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
  File file(path, O_RDONLY);
  const auto unsound = [&](const char* why) -> tl::unexpected<Error> {
    if (file.reason() != 0) return tl::unexpected(PathError(path, file.reason()));
    return Fail(ErrorCode::kInvalid, path + ": " + why, "an older checkpoint is used instead");
  };
  if (file.reason() != 0) return tl::unexpected(PathError(path, file.reason()));
  std::array<char, kMagic.size()> magic{};
  std::uint64_t count = 0;
  if (!file.Read(std::as_writable_bytes(std::span(magic))) || magic != kMagic) {
    return unsound("this is no checkpoint of this version of Muster");
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

// The version of a whole file of another one. Its digest tells it from one of this version of which
// a bit is wrong.
Result<std::optional<char>> OtherVersion(const std::string& path) {
  File file(path, O_RDONLY);
  const auto none = [&]() -> Result<std::optional<char>> {
    if (file.reason() != 0) return tl::unexpected(PathError(path, file.reason()));
    return std::optional<char>();
  };
  std::array<char, kMagic.size()> magic{};
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  if (!file.Read(std::as_writable_bytes(std::span(magic))) || failed) return none();
  const char version = magic.back();
  const bool other = std::equal(magic.begin(), magic.end() - 1, kMagic.begin()) && version >= '0' &&
                     version <= '9' && version != kMagic.back();
  if (!other || size < magic.size() + kDigestBytes) return none();
  std::vector<std::byte> piece(kPieceBytes);
  for (auto left = size - magic.size() - kDigestBytes; left > 0;) {
    const auto next = std::span(piece).first(std::min<std::size_t>(left, piece.size()));
    if (!file.Read(next)) return none();
    left -= next.size();
  }
  const Digest computed = file.digest();
  Digest written{};
  const bool whole = file.Read(std::as_writable_bytes(std::span(written))) && computed == written;
  return whole ? std::optional(version) : none();
}

// Other versions may name their files otherwise.
Result<std::optional<char>> OtherVersionIn(const std::string& folder) {
  const auto names = FilesIn(folder);
  if (!names) return tl::unexpected(names.error());
  Result<std::optional<char>> out = std::optional<char>();
  for (const auto& name : *names) {
    if (name.starts_with('.')) continue;
    auto version = OtherVersion(fmt::format("{}/{}", folder, name));
    if (version && *version) return version;
    if (!version && !IsTorn(version.error())) out = std::move(version);
  }
  return out;
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
      if (read || !AllOf(there, parts)) continue;
      auto these = read_column(column, parts);
      if (these || IsTorn(read.error())) read = std::move(these);
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

Result<std::vector<std::pair<std::int64_t, std::string>>> CheckpointFolder::Names() const {
  std::vector<std::pair<std::int64_t, std::string>> out;
  const auto names = FilesIn(path_);
  if (!names && names.error().code == ErrorCode::kNotFound) return out;
  if (!names) return tl::unexpected(names.error());
  for (const auto& name : *names) {
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
  if (!found) return tl::unexpected(found.error());
  for (auto view = found->rbegin(); view != found->rend() && !out && !refused; ++view) {
    auto read_view = ReadView(folder, view->first, view->second, one);
    if (read_view || refused || IsTorn(out.error())) out = std::move(read_view);
  }
  if (out || refused) return out;
  const auto version = OtherVersionIn(folder);
  if (!version && IsTorn(out.error())) return tl::unexpected(version.error());
  if (!version || !*version) return out;
  return Fail(ErrorCode::kConflict,
              fmt::format("the checkpoint in {} is of version {} of the format; this program reads "
                          "version {}",
                          folder, **version, kMagic.back()),
              "go on with the version of Muster that wrote it, or begin in an empty folder");
}

bool CheckpointFolder::Complete(std::int64_t step, const CheckpointView& view, int columns) const {
  const auto found = Find(path_ + "/" + NameOf(step));
  if (!found) return false;
  const auto parts = found->find(view);
  if (parts == found->end()) return false;
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

Result<void> CheckpointFolder::Look(const std::string& name) const {
  return Read(name, [](const CheckpointPart& /*part*/) -> Result<void> { return {}; });
}

// One of another version ends the search, and so does one that cannot be read: to go back to one
// before it, or to the start, would lose its steps without a word.
Result<std::optional<std::pair<std::string, std::int64_t>>> CheckpointFolder::Newest() const {
  const auto names = Names();
  if (!names) return tl::unexpected(names.error());
  for (const auto& [step, name] : *names) {
    const auto looked = Look(name);
    if (looked || looked.error().code == ErrorCode::kConflict) return std::pair(name, step);
    if (IsTorn(looked.error())) continue;
    return Fail(looked.error().code, looked.error().message,
                looked.error().hint + "; without " + path_ + "/" + name +
                    " the checkpoint before it is used");
  }
  return std::nullopt;
}

void CheckpointFolder::Prune(int keep, std::optional<std::int64_t> writing) const {
  int good = 0;
  const auto names = Names();
  if (!names) return;
  for (const auto& [step, name] : *names) {
    if (step == writing) continue;
    if (good < keep) {
      const auto looked = Look(name);
      if (looked) ++good;
      if (looked || !CanGo(looked.error(), good > 0)) continue;
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
  const auto names = FilesIn(folder);
  if (!names) return;
  for (const auto& name : *names) {
    if (name.starts_with(prefix)) ::unlink(fmt::format("{}/{}", folder, name).c_str());
  }
  ::rmdir(folder.c_str());
}

}  // namespace muster::train
