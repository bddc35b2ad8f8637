// QueueTable: the queue tree with what each queue is promised, holds and asks for.
//
// Queue 0 is the root above all top-level queues. Amounts are Vecs; `held`, `fixed` (held by
// non-preemptible work) and `request` of a queue include its subtree and are kept up to date along
// the path of each change. The tree itself does not change during the life of a Cluster: new quotas
// mean a new Cluster, which is rare and keeps every dimension fixed.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/fair_share.h"
#include "engine/ids.h"
#include "engine/policy.h"
#include "engine/vec.h"
#include "model/queue.h"

namespace muster::engine {

struct QueueState {
  QueueId parent = kNone;
  std::uint32_t depth = 0;
  std::vector<QueueId> children;
  std::int64_t priority = 100;
  std::int64_t created_order = 0;
  Vec quota, limit, weight;
  Vec held, fixed, request;
  Vec kept, kept_fixed;  // of what limit and quota leave, for another than the job at hand
  Vec share;             // fair share of this cycle
  Vec guaranteed;        // quota, where an unlimited one counts as all that is divided at its level
  Vec entitled;          // min(limit, max(guaranteed, share))
  bool limited = false;  // has a limit of its own, or an ancestor has one
  std::int64_t past_use = 0;  // decayed GPU-milliseconds
  bool stale = true;          // what its children were given depends on something that changed
};

// The queues as the policy lets them count: without limits, GPU types, minimum run times or
// priorities where these are switched off.
std::vector<model::Queue> UnderPolicy(std::vector<model::Queue> queues, const Policy& policy);

class QueueTable {
 public:
  // `countables` are the names of resources beside GPUs, cores and memory.
  static Result<QueueTable> Make(std::span<const model::Queue> queues,
                                 std::span<const std::string> countables);

  std::size_t size() const { return states_.size(); }
  const QueueState& operator[](QueueId id) const { return states_[id]; }
  const model::Queue& spec(QueueId id) const { return specs_[id]; }
  QueueId Find(const std::string& name) const;  // kNone: there is none

  std::span<const QueueId> widest_first() const { return widest_first_; }  // parents first

  std::size_t dims() const { return dim_names_.size(); }
  const std::string& dim_name(std::size_t dim) const { return dim_names_[dim]; }
  std::size_t FindDim(const std::string& name) const;  // dims(): no queue names it
  std::size_t first_countable_dim() const { return first_countable_; }

  void AddHeld(QueueId leaf, const Vec& cost, bool fixed, int sign);
  // Room under the limit of this one queue, and for fixed work under its quota, that nobody may
  // take.
  void Keep(QueueId queue, const Vec& room, bool fixed, int sign);
  void AddRequest(QueueId leaf, const Vec& cost, int sign);
  void SetPastUse(QueueId id, std::int64_t gpu_ms);

  // Whether the queue and its ancestors may hold `adds` more: limits, and for fixed work the
  // quotas.
  bool WithinLimits(QueueId leaf, const Vec& adds) const;
  bool WithinFixedQuota(QueueId leaf, const Vec& adds) const;

  // The same of what is held already, in the dimensions of which `of` has something.
  bool HeldWithinBounds(QueueId leaf, const Vec& of, bool fixed) const;

  bool IsBelow(QueueId queue, QueueId top) const;  // or that queue itself; kNone: nothing is

  // The two ancestors (or the queues themselves) at which the paths of a and b part.
  std::pair<QueueId, QueueId> Part(QueueId a, QueueId b) const;

  // Divides `total` down the tree, below those queues for which anything has changed since it was
  // last done. `strength_milli` is how hard past use pulls; 0: not at all.
  void DivideShares(const Vec& total, std::int64_t strength_milli);
  // Whether any share has changed since this was last asked.
  bool TakeSharesChanged() { return std::exchange(shares_changed_, false); }

 private:
  void AddDims(std::span<const model::Queue> queues, std::span<const std::string> countables);
  void FillAmounts(QueueId id);
  void FillUnnamedTypeQuotas(QueueId id);
  void DivideAmong(QueueId parent, std::size_t dim, std::int64_t total);
  void WeighPastUse(const QueueState& parent, std::int64_t strength_milli);

  std::vector<QueueState> states_;
  std::vector<model::Queue> specs_;
  std::map<std::string, QueueId> by_name_;
  std::vector<QueueId> widest_first_;  // parents before children
  std::vector<std::string> dim_names_;
  std::size_t first_countable_ = 0;
  ShareDivider divider_;
  std::vector<ShareClaim> claims_;
  std::vector<std::int64_t> pulled_;  // weights of the siblings after past use
  std::int64_t strength_milli_ = 0;   // of the last division
  bool shares_changed_ = false;
};

}  // namespace muster::engine
