#include "train/mesh/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace muster::train {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t kMapped = std::size_t{4} << 20U;  // at a time, so that it can be stopped

// Older kernels (before 5.14) refuse: then pages are mapped as they are read.
void MapPages(const std::stop_token& stop, std::byte* data, std::size_t size) {
  for (std::size_t at = 0; at < size && !stop.stop_requested(); at += kMapped) {
    if (madvise(data + at, std::min(kMapped, size - at), MADV_POPULATE_READ) != 0) return;
  }
}

tl::unexpected<Error> NoMemory(std::uint64_t bytes) {
  return Fail(ErrorCode::kUnavailable,
              fmt::format("cannot share {} bytes of memory: {}", bytes, std::strerror(errno)),
              "free memory on this machine, or raise the limit of the worker");
}

}  // namespace

Result<Segment> Segment::Create(std::uint64_t bytes) {
  Segment out;
  out.fd_ = Fd(memfd_create("muster", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // posix_fallocate: a machine without the memory says so here and not by a signal later.
  if (!out.fd_ || ftruncate(out.fd_.get(), static_cast<off_t>(bytes)) != 0) return NoMemory(bytes);
  if (const int code = posix_fallocate(out.fd_.get(), 0, static_cast<off_t>(bytes)); code != 0) {
    errno = code;
    return NoMemory(bytes);
  }
  if (fcntl(out.fd_.get(), F_ADD_SEALS, kSeals) != 0) return NoMemory(bytes);
  void* at =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, out.fd_.get(), 0);
  if (at == MAP_FAILED) return NoMemory(bytes);
  out.data_ = static_cast<std::byte*>(at);
  out.size_ = bytes;
  return out;
}

Result<Segment> Segment::Map(Fd fd, bool writable) {
  struct stat facts {};
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd.get(), &facts) != 0 ||
      facts.st_size <= 0) {
    return Fail(ErrorCode::kInvalid, "the peer's memory could shrink: it is not used");
  }
  Segment out;
  out.fd_ = std::move(fd);
  const auto size = static_cast<std::size_t>(facts.st_size);
  const int access = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* at = mmap(nullptr, size, access, MAP_SHARED, out.fd_.get(), 0);
  if (at == MAP_FAILED) return NoMemory(size);
  out.data_ = static_cast<std::byte*>(at);
  out.size_ = size;
  out.mapping_ = std::jthread(MapPages, out.data_, out.size_);
  return out;
}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::move(other.mapping_)) {}

Segment& Segment::operator=(Segment&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  return *this;
}

void Segment::Settle() {
  if (mapping_.joinable()) mapping_.join();
}

Segment::~Segment() {
  mapping_.request_stop();
  Settle();
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace muster::train
