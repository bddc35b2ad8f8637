#include "train/mesh/mesh.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/hex.h"
#include "base/secret.h"
#include "train/mesh/mesh_io.h"

namespace muster::train {
namespace {

constexpr std::size_t kMostJobName = 255;
constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kBounceBytes = 1U << 20U;

// Same kernel and same network namespace: then abstract sockets reach, and memory can be shared.
std::string FindHost() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::array<char, 64> name{};
  const ssize_t size = readlink("/proc/self/ns/net", name.data(), name.size() - 1);
  return fmt::format("{} {}", boot, size > 0 ? name.data() : "");
}

MemberId NewMemberId() {
  const std::string bytes = *FromHex(NewSecretHex(sizeof(MemberId)));
  MemberId id = 0;
  std::memcpy(&id, bytes.data(), sizeof id);
  return id == 0 ? 1 : id;
}

Result<void> CheckOptions(const MeshOptions& options) {
  if (options.job.empty() || options.job.size() > kMostJobName) {
    return Fail(ErrorCode::kInvalid, "the name of the job has 1 to 255 bytes");
  }
  if (options.secret.empty()) {
    return Fail(ErrorCode::kInvalid, "the job has no secret", "give 16 random bytes or more");
  }
  if (options.timeout_ms < kLeastTimeoutMs) {
    return Fail(
        ErrorCode::kInvalid,
        fmt::format("a time-out of {} ms takes whoever is only late for lost", options.timeout_ms),
        fmt::format("give --timeout-ms {} or more", kLeastTimeoutMs));
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Mesh>> Mesh::Open(const MeshOptions& options, MeshEvents events) {
  if (auto good = CheckOptions(options); !good) return tl::unexpected(good.error());
  MeshParts parts;
  parts.options = options;
  parts.events = std::move(events);
  const std::uint64_t pages = (options.memory_bytes + kPage - 1) / kPage;
  auto segment = Segment::Create(pages * kPage + kBounceBytes);
  if (!segment) return tl::unexpected(segment.error());
  parts.segment = std::move(*segment);
  parts.bounce_bytes = kBounceBytes;
  auto listening = ListenTcp(options.address);
  if (!listening) return tl::unexpected(listening.error());
  parts.tcp = std::move(listening->fd);
  parts.self.id = NewMemberId();
  parts.self.host = options.host.empty() ? FindHost() : options.host;
  parts.self.address = listening->address;
  if (options.share_memory) {
    parts.self.segment = "muster-" + NewSecretHex(12);
    parts.self.segment_bytes = options.memory_bytes;
    auto local = ListenUnix(parts.self.segment);
    if (!local) return tl::unexpected(local.error());
    parts.local = std::move(*local);
  }
  auto wires = Wires::Open(options);
  if (!wires) return tl::unexpected(wires.error());
  parts.wires = std::move(*wires);
  return std::make_unique<MeshIo>(std::move(parts));
}

}  // namespace muster::train
