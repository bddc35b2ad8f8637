// PartServer: the owner of a part in an asynchronous round, and what workers say to it.
//
// A worker pulls parameters of one version of the part, computes a unit, and pushes its gradient,
// which becomes the next version. The owner of the first part also says which unit is next. Each
// unit is applied at most once: who sends it again, because it may not have arrived everywhere,
// does no harm. A thread for each worker answers it; the part itself is behind one lock. A unit
// that is not of the round is an error of who asks for it.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "train/mesh/fabric.h"
#include "train/run/live_round.h"
#include "train/run/tags.h"
#include "train/run/unit_queue.h"

namespace muster::train {

enum class AsyncTag : std::uint64_t {
  kAgree,       // between owners: what is applied
  kRequest,     // AsyncRequest, then the bases by part
  kGradient,    // behind a push, by bucket
  kReply,       // AsyncReply
  kParameters,  // behind the reply to a pull, by bucket
  kFinal,       // parameters at the end of the round, by bucket
  kFinalState,
};

inline Tag TagOf(std::int64_t step, AsyncTag what, std::size_t bucket = 0) {
  return StepTag(step, 0, TagKind::kAsync, bucket, static_cast<std::uint64_t>(what));
}

struct AsyncRequest {
  enum What : std::int64_t { kPull, kPush, kEnd };
  std::int64_t what = kPull;
  std::int64_t unit = 0;
};

struct AsyncReply {
  static constexpr std::int64_t kNoUnit = -1;
  std::int64_t unit = kNoUnit;
  std::int64_t version = 0;
};

// Things that were offered to one peer, until it has them. They lie in memory that goes after this;
// who ends before they were taken breaks off the view, for they may be on their way.
class Offers {
 public:
  Offers(Fabric& fabric, int peer) : fabric_(fabric), peer_(peer) {}
  ~Offers() {
    if (!tags_.empty()) fabric_.Abort("this worker has stopped");
  }
  Offers(Offers&& other) noexcept = default;  // leaves nothing in the other
  Offers(const Offers&) = delete;
  Offers& operator=(const Offers&) = delete;
  Offers& operator=(Offers&&) = delete;
  void Add(Tag tag, std::span<const std::byte> bytes) {
    tags_.push_back(tag);
    fabric_.Offer(peer_, tag, bytes);
  }
  Result<void> Taken() {
    for (const Tag tag : tags_) {
      if (auto taken = fabric_.Taken(peer_, tag); !taken) return taken;
    }
    tags_.clear();
    return {};
  }

 private:
  Fabric& fabric_;
  int peer_;
  std::vector<Tag> tags_;
};

class PartServer {
 public:
  struct View {
    std::uint64_t generation = 0;
    int shards = 1;
    UnitQueue* queue = nullptr;  // of the owner of the first part
  };
  // All must outlive it.
  PartServer(const Workload& workload, Fabric& fabric, const PartCut& cut, LiveRound& live,
             const View& view);

  // The unit that the worker is to compute, and the parameters for it as they are now.
  AsyncReply Pull(int worker, std::int64_t unit, std::span<float> parameters);
  // `update`: whose generation is seen to.
  void Push(Update update, std::span<const float> gradient);
  // Answers a worker elsewhere until it has no more units; `parameters` is memory for what it gets.
  Result<void> Serve(int worker, std::span<float> parameters);

 private:
  bool Has(std::int64_t unit) const;  // the round
  Result<void> FetchGradient(int worker, std::span<float> gradient);
  std::int64_t Version() const;

  const Workload& workload_;
  Fabric& fabric_;
  const PartCut& cut_;
  LiveRound& live_;
  View view_;
  std::mutex mutex_;  // of the round
};

}  // namespace muster::train
