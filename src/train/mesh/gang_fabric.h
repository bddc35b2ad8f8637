// GangFabric: the Fabric over links: through tables in shared memory, or over connections.
//
// Bytes in the shared memory of this member are offered where they lie; small ones elsewhere are
// copied into its bounce area; what does not fit there goes over the connection, also between
// members of one host. A wait spins for some microseconds (hardly, where there are more members
// than processors), then sleeps. Before a wait ends with an error, nothing that was offered is read
// or sent from the caller's memory any more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "train/mesh/bounce.h"
#include "train/mesh/fabric.h"
#include "train/mesh/link.h"

namespace muster::train {

class GangFabric final : public Fabric {
 public:
  // By rank; null for this one. Shared, because a lost link is gone from the mesh while somebody
  // here may still look at its memory. `segment` is the memory of this member with its bounce area.
  using Links = std::vector<std::shared_ptr<Link>>;
  GangFabric(std::uint64_t generation, int rank, Links links, std::span<const std::byte> segment,
             Bounce& bounce, std::function<void()> gone);
  ~GangFabric() override;

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  bool SharesMemory(int peer) const override;
  void Offer(int peer, Tag tag, std::span<const std::byte> bytes) override;
  Result<std::span<const std::byte>> Look(int peer, Tag tag) override;
  Result<void> Fetch(int peer, Tag tag, std::span<std::byte> into) override;
  void Expect(int peer, Tag tag, std::span<std::byte> into) override;
  void Done(int peer, Tag tag) override;
  Result<void> Taken(int peer, Tag tag) override;
  void Release(int peer) override;
  void Abort(const std::string& why) override;
  bool aborted() const override { return aborted_.load(); }

  void AbortHere(const std::string& why);  // without telling the others, who see it themselves
  // What peers gave up, also before it was entered here.
  void LookForGivenUp();
  bool Has(const Link& link) const;

 private:
  struct Offered {
    Slot* slot = nullptr;  // null: over the connection, or taken
    std::uint64_t use = 0;
    std::span<std::byte> bounced = {};
    bool taken = false;  // the peer was done with it, and its slot is another's
  };
  struct Looked {
    Slot* slot = nullptr;
    std::uint64_t word = 0;
  };
  struct Peer {
    std::shared_ptr<Link> link;
    std::mutex mutex;  // what follows
    std::map<Tag, Offered> offered;
    std::map<Tag, Looked> looked;
    bool withdrawn = false;  // nothing is offered any more
    std::atomic<bool> released = false;
  };
  struct Found {
    Looked where;
    std::span<const std::byte> bytes;
  };

  Peer& At(int peer) const;
  void Free(Offered& offered);
  Slot* SlotToUse(Peer& peer, Tag tag);
  bool OfferInTable(Peer& peer, Tag tag, std::span<const std::byte> bytes);
  bool FindOffer(Peer& peer, Tag tag, Found& found);
  Result<Found> AwaitOffer(Peer& peer, Tag tag);
  Result<void> FetchSent(Peer& peer, Tag tag, std::span<std::byte> into);
  bool End(const std::string& why);
  void Withdraw();
  tl::unexpected<Error> Aborted() const;
  template <typename Ready>
  bool Await(Link& link, const Ready& ready);

  const std::uint64_t generation_;
  const int rank_;
  std::vector<std::unique_ptr<Peer>> peers_;  // null for this one
  const std::span<const std::byte> segment_;
  Bounce& bounce_;
  const std::function<void()> gone_;
  const std::int64_t spin_ns_;
  std::atomic<bool> aborted_ = false;
  std::mutex end_mutex_;
  mutable std::mutex why_mutex_;
  std::string why_;
};

}  // namespace muster::train
