#include "train/torch/nccl_group.h"

#ifdef MUSTER_NCCL

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

namespace muster::train {

namespace {

tl::unexpected<Error> Wrong(const char* what, ncclResult_t result) {
  return Fail(ErrorCode::kUnavailable,
              std::string("NCCL cannot ") + what + ": " + ncclGetErrorString(result),
              "NCCL_DEBUG=WARN says more; --sum mesh does without it");
}

tl::unexpected<Error> Left() {
  return Fail(ErrorCode::kUnavailable, "the group of GPUs was left before all were in it");
}

// As NCCL itself tells hosts apart.
std::string HostName() {
  if (const char* given = std::getenv("NCCL_HOSTID")) return given;
  std::array<char, 65> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

class Group final : public NcclGroup {
 public:
  ~Group() override { Leave(); }

  std::string Device() const override {
    if (failed_) return "";
    const auto* device = at::cuda::getDeviceProperties(0);
    std::string out = HostName() + "/";
    for (const char byte : device->uuid.bytes) {
      constexpr const char* kDigits = "0123456789abcdef";
      out += kDigits[static_cast<unsigned char>(byte) >> 4U];
      out += kDigits[static_cast<unsigned char>(byte) & 15U];
    }
    return out;
  }

  void Begin() override {
    Leave();
    leaving_ = false;
  }

  Result<std::string> Invite() override {
    ncclUniqueId id{};
    if (const auto made = ncclGetUniqueId(&id); made != ncclSuccess) return Wrong("begin", made);
    return std::string(id.internal, sizeof id.internal);
  }

  Result<void> Join(const std::string& invitation, int rank, int size) override {
    if (leaving_) return Left();
    ncclUniqueId id{};
    if (invitation.size() != sizeof id.internal) {
      return Fail(ErrorCode::kInternal, "that is no invitation of NCCL");
    }
    std::memcpy(id.internal, invitation.data(), sizeof id.internal);
    c10::cuda::set_device(0);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t made = nullptr;
    const auto begun = ncclCommInitRankConfig(&made, size, id, rank, &config);
    if (begun != ncclSuccess && begun != ncclInProgress) {
      failed_ = true;
      return Wrong("join", begun);
    }
    {
      const std::lock_guard lock(mutex_);
      comm_ = made;
    }
    // Who leaves while it is being made finds nothing to give up: that is left to this one.
    const auto joined = Settled(begun);
    const bool left = leaving_;
    if (joined == ncclSuccess && !left) return {};
    if (!left) failed_ = true;
    Leave();
    return left ? Left() : Wrong("join", joined);
  }

  void Leave() override {
    leaving_ = true;
    const std::lock_guard lock(mutex_);
    if (comm_ != nullptr) ncclCommAbort(std::exchange(comm_, nullptr));
  }

  Result<void> Reduce(float* floats, std::span<const Extent> parts, const c10::Stream& stream,
                      const std::function<bool()>& goes_on) override {
    const std::lock_guard lock(mutex_);
    if (comm_ == nullptr) return Fail(ErrorCode::kUnavailable, "the group of GPUs is gone");
    auto* const on = c10::cuda::CUDAStream(stream).stream();
    ncclGroupStart();
    for (std::size_t root = 0; root < parts.size(); ++root) {
      float* const at = floats + parts[root].first;
      ncclReduce(at, at, parts[root].size(), ncclFloat32, ncclSum, static_cast<int>(root), comm_,
                 on);
    }
    const auto begun = SettledLocked(ncclGroupEnd(), goes_on);
    if (begun == ncclSuccess) return {};
    if (!leaving_ && goes_on()) failed_ = true;
    return Wrong("sum", begun);
  }

  bool Broken() const override {
    const std::lock_guard lock(mutex_);
    ncclResult_t state = ncclSuccess;
    if (comm_ == nullptr || ncclCommGetAsyncError(comm_, &state) != ncclSuccess) return true;
    return state != ncclSuccess && state != ncclInProgress;
  }

 private:
  // The first sum connects the members, which waits for ever for one that is gone.
  ncclResult_t SettledLocked(ncclResult_t begun, const std::function<bool()>& goes_on) const {
    while (begun == ncclInProgress && comm_ != nullptr && !leaving_ && goes_on()) {
      std::this_thread::yield();
      ncclCommGetAsyncError(comm_, &begun);
    }
    return begun == ncclInProgress ? ncclInternalError : begun;
  }

  ncclResult_t Settled(ncclResult_t begun) const {
    while (begun == ncclInProgress && !leaving_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      const std::lock_guard lock(mutex_);
      if (comm_ == nullptr) break;
      ncclCommGetAsyncError(comm_, &begun);
    }
    return begun == ncclInProgress ? ncclInternalError : begun;
  }

  mutable std::mutex mutex_;
  ncclComm_t comm_ = nullptr;
  std::atomic<bool> leaving_{false};
  std::atomic<bool> failed_{false};  // of itself: it is not tried again
};

}  // namespace

std::unique_ptr<NcclGroup> NcclGroup::Make() { return std::make_unique<Group>(); }

}  // namespace muster::train

#else

namespace muster::train {

std::unique_ptr<NcclGroup> NcclGroup::Make() { return nullptr; }

}  // namespace muster::train

#endif
