#include "train/run/kept_model.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "base/files.h"
#include "train/exact/hash.h"

namespace muster::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostHeader = std::size_t{16} << 20U;
constexpr const char* kHash = "hash";

static_assert(std::endian::native == std::endian::little, "safetensors are little-endian");

std::string LayerName(std::size_t layer) { return fmt::format("layer.{}", layer); }

Error Unsound(const std::string& path, const std::string& why) {
  return {ErrorCode::kConflict, fmt::format("{} is no model that can be used: {}", path, why),
          "keep it anew, or take another copy"};
}

// A file descriptor that is closed, with what went wrong first.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd), reason_(fd < 0 ? errno : 0) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  void Write(std::span<const std::byte> bytes) {
    while (reason_ == 0 && !bytes.empty()) {
      const auto count = ::write(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) reason_ = errno;
      if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }
  // False: there is less.
  bool Read(std::span<std::byte> bytes) {
    while (reason_ == 0 && !bytes.empty()) {
      const auto count = ::read(fd_, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) reason_ = errno;
      if (count == 0) return false;
      if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return reason_ == 0;
  }
  void Sync() {
    if (reason_ == 0 && ::fsync(fd_) != 0) reason_ = errno;
  }
  std::size_t Size() const {
    struct stat facts {};
    return ::fstat(fd_, &facts) == 0 ? static_cast<std::size_t>(facts.st_size) : 0;
  }
  int reason() const { return reason_; }

 private:
  int fd_;
  int reason_;
};

std::string HeaderOf(const KeptModel& model) {
  Json about = {{"format", "muster"}};
  for (const auto& [name, text] : model.facts) about[name] = text;
  about[kHash] = HashText(model.parameters);
  Json header = {{"__metadata__", about}};
  std::size_t at = 0;
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    const auto floats = model.layers[layer];
    header[LayerName(layer)] = {
        {"dtype", "F32"}, {"shape", {floats}}, {"data_offsets", {at, at + floats * sizeof(float)}}};
    at += floats * sizeof(float);
  }
  auto text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the floats lie on a border of theirs
  return text;
}

// Takes the header apart; what is wrong with it, or nothing.
std::string ReadHeader(const std::string& text, std::size_t bytes, KeptModel& model,
                       std::string& hash) try {
  const auto header = Json::parse(text);
  for (const auto& [name, value] : header.at("__metadata__").items()) {
    if (name == kHash) {
      hash = value.get<std::string>();
    } else if (name != "format") {
      model.facts[name] = value.get<std::string>();
    }
  }
  std::size_t at = 0;
  for (std::size_t layer = 0; layer + 1 < header.size(); ++layer) {
    const auto& tensor = header.at(LayerName(layer));
    const auto from = tensor.at("data_offsets").at(0).get<std::size_t>();
    const auto to = tensor.at("data_offsets").at(1).get<std::size_t>();
    if (to > bytes) return "it is cut off";
    const bool sound =
        tensor.at("dtype") == "F32" && from == at && to >= from && (to - from) % sizeof(float) == 0;
    if (!sound) return "its layers do not lie one behind the other";
    model.layers.push_back((to - from) / sizeof(float));
    at = to;
  }
  return at == bytes ? "" : "something is behind its last layer";
} catch (const Json::exception& error) {
  return fmt::format("its header cannot be read ({})", error.what());
}

}  // namespace

std::string HashText(const std::vector<float>& parameters) {
  return fmt::format("{:016x}", HashOf(parameters));
}

Result<void> WriteModel(const std::string& path, const KeptModel& model) {
  const auto draft = fmt::format("{}.{}.part", path, ::getpid());
  const auto header = HeaderOf(model);
  const std::uint64_t size = header.size();
  const auto folder = std::filesystem::path(path).parent_path().string();
  int reason = folder.empty() ? 0 : MakeFolders(folder);
  if (reason == 0) {
    Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    file.Write(std::as_bytes(std::span(&size, 1)));
    file.Write(std::as_bytes(std::span(header)));
    file.Write(std::as_bytes(std::span(model.parameters)));
    file.Sync();
    reason = file.reason();
  }
  if (reason == 0 && std::rename(draft.c_str(), path.c_str()) != 0) reason = errno;
  if (reason == 0) reason = SyncFolder(folder.empty() ? "." : folder);
  if (reason == 0) return {};
  ::unlink(draft.c_str());
  return Fail(ErrorCode::kUnavailable,
              fmt::format("the model could not be written to {}: {}", path, std::strerror(reason)),
              "give a file in a folder of yours with --keep");
}

Result<KeptModel> ReadModel(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.reason() != 0) return tl::unexpected(PathError(path, file.reason()));
  const auto size = file.Size();
  std::uint64_t header_size = 0;
  const bool begun = file.Read(std::as_writable_bytes(std::span(&header_size, 1)));
  if (!begun || header_size > kMostHeader || header_size + sizeof header_size > size) {
    return tl::unexpected(Unsound(path, "it does not begin as a file of safetensors does"));
  }
  std::string header(header_size, ' ');
  KeptModel model;
  std::string hash;
  const auto bytes = size - sizeof header_size - header.size();
  std::string wrong = "it cannot be read";
  if (file.Read(std::as_writable_bytes(std::span(header)))) {
    wrong = ReadHeader(header, bytes, model, hash);
  }
  if (!wrong.empty()) return tl::unexpected(Unsound(path, wrong));
  model.parameters.resize(bytes / sizeof(float));
  if (!file.Read(std::as_writable_bytes(std::span(model.parameters)))) {
    return tl::unexpected(Unsound(path, "it is cut off"));
  }
  if (const auto found = HashText(model.parameters); found != hash) {
    return tl::unexpected(
        Unsound(path, fmt::format("its parameters have the hash {}, and it says {}", found, hash)));
  }
  return model;
}

}  // namespace muster::train
