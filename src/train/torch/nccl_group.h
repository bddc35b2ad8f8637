// NcclGroup: sums over the GPUs of several workers by NCCL, each part at its owner.
//
// One communicator at a time, made without blocking, so that whoever waits for it, or for a sum,
// can be told to leave: NCCL itself waits for ever for a peer that is gone.
#pragma once

#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "train/run/extent.h"

namespace muster::train {

class NcclGroup {
 public:
  static std::unique_ptr<NcclGroup> Make();  // null: there was no NCCL when this was built
  virtual ~NcclGroup() = default;

  virtual std::string Device() const = 0;
  virtual void Begin() = 0;  // this and what follows: see DeviceSum
  virtual Result<std::string> Invite() = 0;
  virtual Result<void> Join(const std::string& invitation, int rank, int size) = 0;
  virtual void Leave() = 0;
  // In place, on the stream: each part becomes the sum of all at the worker of its index. Waits for
  // the others no longer than it `goes_on`.
  virtual Result<void> Reduce(float* floats, std::span<const Extent> parts,
                              const c10::Stream& stream, const std::function<bool()>& goes_on) = 0;
  // Whether something went wrong with what was begun.
  virtual bool Broken() const = 0;
};

}  // namespace muster::train
