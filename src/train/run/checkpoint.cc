#include "train/run/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/files.h"
#include "base/secret.h"

namespace muster::train {

namespace {

constexpr std::array<char, 8> kMagic{'M', 'U', 'S', 'T', 'C', 'K', 'P', '2'};
constexpr std::size_t kDigestBytes = 32;
constexpr std::uint64_t kMostNumbers = std::uint64_t{1} << 20U;  // in a head
constexpr const char* kPrefix = "step-";

using Digest = std::array<unsigned char, kDigestBytes>;

// The head: numbers of 64 bits, of which the first says how many there are.
std::vector<std::uint64_t> HeadOf(const CheckpointPart& part) {
  std::vector<std::uint64_t> head{0,
                                  static_cast<std::uint64_t>(part.step),
                                  static_cast<std::uint64_t>(part.columns),
                                  static_cast<std::uint64_t>(part.column),
                                  static_cast<std::uint64_t>(part.parts),
                                  static_cast<std::uint64_t>(part.part),
                                  static_cast<std::uint64_t>(part.state_floats),
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

// "0-of-2"; of columns after the first "column-3-0-of-2".
std::string ColumnName(int column) { return column == 0 ? "" : fmt::format("column-{}-", column); }

std::string FileOf(int column, int part, int parts) {
  return fmt::format("{}{}-of-{}", ColumnName(column), part, parts);
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
  if (!file.Read(std::as_writable_bytes(std::span(&count, 1))) || count < 8 ||
      count > kMostNumbers) {
    return unsound("it is cut off");
  }
  std::vector<std::uint64_t> head(count - 1);
  if (!file.Read(std::as_writable_bytes(std::span(head)))) return unsound("it is cut off");
  CheckpointPart part;
  part.step = static_cast<std::int64_t>(head[0]);
  part.columns = static_cast<int>(head[1]);
  part.column = static_cast<int>(head[2]);
  part.parts = static_cast<int>(head[3]);
  part.part = static_cast<int>(head[4]);
  part.state_floats = static_cast<int>(head[5]);
  const std::uint64_t values = head[6];
  for (std::size_t i = 7; i + 1 < head.size(); i += 2)
    part.buckets.push_back({head[i], head[i + 1]});
  struct stat facts = {};
  if (::stat(path.c_str(), &facts) != 0) return tl::unexpected(PathError(path, errno));
  const auto bytes = kMagic.size() + count * 8 + values * sizeof(float) + kDigestBytes;
  const bool fits = values < static_cast<std::uint64_t>(facts.st_size) &&
                    bytes == static_cast<std::uint64_t>(facts.st_size) && part.parts > 0 &&
                    part.part >= 0 && part.part < part.parts && part.state_floats >= 0 &&
                    ValuesOf(part) == values;
  if (!fits) return unsound("it is cut off");
  part.values.resize(values);
  if (!file.Read(std::as_writable_bytes(std::span(part.values)))) return unsound("it is cut off");
  const Digest computed = file.digest();
  Digest written{};
  if (!file.Read(std::as_writable_bytes(std::span(written))) || computed != written) {
    return unsound("its bytes are not those that were written");
  }
  return part;
}

}  // namespace

Result<void> CheckpointFolder::Write(const CheckpointPart& part) const {
  const std::string folder = path_ + "/" + NameOf(part.step);
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return tl::unexpected(WriteError(folder, failed.value()));
  const std::string draft = folder + "/.draft-" + NewSecretHex(8);
  int reason = 0;
  {
    File file(draft, O_WRONLY | O_CREAT | O_EXCL);
    file.Write(std::as_bytes(std::span(kMagic)));
    const auto head = HeadOf(part);
    file.Write(std::as_bytes(std::span(head)));
    file.Write(std::as_bytes(std::span(part.values)));
    const Digest digest = file.digest();
    file.WriteAlone(std::as_bytes(std::span(digest)));
    file.Sync();
    reason = file.reason();
  }
  const std::string path = folder + "/" + FileOf(part.column, part.part, part.parts);
  if (reason == 0 && ::rename(draft.c_str(), path.c_str()) != 0) reason = errno;
  if (reason == 0) return {};
  ::unlink(draft.c_str());
  return tl::unexpected(WriteError(path, reason));
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

Result<int> CheckpointFolder::ReadColumn(
    const std::string& folder, int column,
    const std::function<Result<void>(const CheckpointPart&)>& take) const {
  const std::string first = ColumnName(column) + "0-of-";
  std::vector<int> counts;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
    const std::string file = entry.path().filename();
    if (file.starts_with(first)) counts.push_back(std::atoi(file.c_str() + first.size()));
  }
  // Workers of another number may have begun to write the same step before they were changed.
  std::ranges::sort(counts);
  Error why{ErrorCode::kNotFound, folder + " is no complete checkpoint", ""};
  for (const int parts : counts) {
    const auto there = [&](int part) {
      return std::filesystem::exists(folder + "/" + FileOf(column, part, parts), failed);
    };
    int part = 0;
    while (part < parts && there(part)) ++part;
    if (part < parts) continue;
    int columns = 0;
    for (part = 0; part < parts; ++part) {
      const auto one = ReadPart(folder + "/" + FileOf(column, part, parts));
      if (one) columns = one->columns;
      const auto taken = one ? take(*one) : Result<void>(tl::unexpected(one.error()));
      if (taken) continue;
      why = taken.error();
      break;
    }
    if (part == parts) return columns;
  }
  return tl::unexpected(why);
}

Result<void> CheckpointFolder::Read(
    const std::string& name, const std::function<Result<void>(const CheckpointPart&)>& take) const {
  int columns = 1;
  for (int column = 0; column < columns; ++column) {
    const auto read = ReadColumn(path_ + "/" + name, column, take);
    if (!read) return tl::unexpected(read.error());
    columns = *read;
  }
  return {};
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

void CheckpointFolder::Prune(int keep) const {
  int good = 0;
  for (const auto& [step, name] : Names()) {
    if (good < keep) {
      good += Sound(name) ? 1 : 0;
      continue;
    }
    std::error_code failed;
    std::filesystem::remove_all(path_ + "/" + name, failed);
  }
}

}  // namespace muster::train
