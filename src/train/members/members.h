// Members: how the workers of a job agree on who they are.
//
// Nobody is special: the member of lowest rank that is not lost is the chief and proposes the next
// view; the Store takes the first proposal for a generation and no other, so there is one history
// of views, also where the job fell apart. Work goes on only when every member of a view takes
// part, so whoever is not in the newest view cannot have finished a step that counts. A worker that
// starts joins those who are there, or is the first member if nobody is. Costs nothing while no one
// comes or goes, but for a small file that the chief renews.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "train/members/store.h"
#include "train/members/view.h"
#include "train/mesh/mesh.h"

namespace muster::train {

struct MembersOptions {
  MeshOptions mesh;
  int min_workers = 1;    // fewer do not work, but wait for others
  int first_workers = 1;  // the same for the first view that works; who starts together starts so
  bool server = false;    // this one keeps parameters and computes nothing
  int setbacks = 0;       // so often in a row no view with this worker came about
  // Whether the state of this step can be pieced together from what is held.
  std::function<bool(const Holdings&, std::int64_t step)> recoverable;
  // A checkpoint to begin from where it cannot: the file and its step; none: from the start. May
  // take long.
  std::function<Result<std::optional<std::pair<std::string, std::int64_t>>>()> newest_checkpoint;
  std::string terms;                  // what all workers must agree on, to be compared
  std::function<void(LostHow)> lost;  // a member of the view; from a thread of the mesh
};

// Where a worker stands when it stops.
struct Standing {
  bool planned = false;
  std::int64_t completed = 0;
  std::vector<Holding> holdings;
};

// What becomes of a worker.
struct Turn {
  enum class Kind {
    kView,        // it goes on, as `change` says
    kFinished,    // the job is done
    kLeftBehind,  // the others go on without it; it can join them again, as a new worker
    kLeft,        // it was told to leave, and belongs to no view
  };
  Kind kind = Kind::kView;
  ChangeMessage change;
};

class Members {
 public:
  // `leave` becomes true when this worker shall go.
  static Result<std::unique_ptr<Members>> Open(const MembersOptions& options, Store& store,
                                               Clock& clock, const std::atomic<bool>& leave);
  ~Members();

  Mesh& mesh() { return *mesh_; }
  MemberId id() const { return mesh_->self().id; }

  // Waits until there is a view to go on in; the first call joins, or founds the job.
  Result<Turn> Next(const Standing& standing);
  // Connects all of the view that Next gave. An error: call Next again, as after any failure.
  Result<Fabric*> Enter(const View& view);

  bool IsChief() const;
  // For the chief: somebody wants to come or to go, so all should stop after this step.
  bool ChangeWanted() const;
  // This worker wants to go; Next will say when it is no member any more.
  void Leave();
  // The last step is done: who comes now need not.
  Result<void> Finish(std::int64_t step);

 private:
  using Lock = std::unique_lock<std::mutex>;

  Members(const MembersOptions& options, Store& store, Clock& clock, const std::atomic<bool>& leave)
      : options_(options), store_(store), clock_(clock), leave_(leave) {}

  void Told(MemberId from, const std::string& bytes);
  bool Lost(MemberId who);
  void Renew();  // in a thread of its own: the lease

  // One attempt each; none: not yet.
  Result<std::optional<Turn>> FoundOrJoin();
  Result<std::optional<Turn>> GoOn(Lock& lock);
  // Attempts, until one succeeds or the store has failed for long.
  Result<Turn> Insist(const std::function<Result<std::optional<Turn>>()>& attempt);
  Result<bool> NobodyIsThere(const std::optional<ChangeMessage>& last);
  Result<void> AgreeOnTerms();
  Result<std::optional<ChangeMessage>> Newest();
  // Where it may. True: somebody was reached.
  bool KnockAt(const View& newest);
  bool Waited(std::int64_t since_ns, std::int64_t timeouts);
  Result<std::optional<ChangeMessage>> Found(const View& before);
  Result<bool> LeaseIsOld();

  void Stop(const Standing& standing);
  std::optional<MemberId> Chief() const;
  bool AllStopped() const;
  bool WorthAView(const View& next) const;
  // Whether it waits, from its members and from the view before it; 0: there was none.
  void Decide(View& next, const View& before) const;
  std::vector<Endpoint> Everybody() const;  // members of the view, then those who leave
  // Without a step where what is held is not enough.
  ChangeMessage Propose(bool& recoverable) const;
  std::set<MemberId> CutOff() const;
  Result<std::optional<ChangeMessage>> ProposeWhenAllStopped(Lock& lock);
  Result<std::optional<Turn>> LookForNewer(Lock& lock);
  Turn Take(const ChangeMessage& change);
  void Announce(const ChangeMessage& change);
  void Leave(const Lock& held);

  MembersOptions options_;
  Store& store_;
  Clock& clock_;
  const std::atomic<bool>& leave_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<Fabric> fabric_;

  mutable std::mutex mutex_;
  std::condition_variable news_;
  View view_;                                   // generation 0: in none yet
  std::set<MemberId> lost_;                     // of the view, as seen from here
  std::set<MemberId> leaving_;                  // of the view
  std::map<MemberId, StoppedMessage> stopped_;  // in the view's generation
  std::map<MemberId, StoppedMessage> early_;    // in one that this worker has yet to take
  std::vector<Endpoint> joiners_;
  std::set<MemberId> serving_;           // members and joiners that are servers
  std::optional<ChangeMessage> change_;  // told, not yet taken
  std::set<MemberId> gone_;              // lost, and not heard of since
  std::int64_t stopped_since_ns_ = 0;
  bool ending_ = false;
  std::thread renewing_;

  bool agreed_ = false;  // on the terms
  std::string lease_;    // as seen last, by one who waits for it to grow old
  std::int64_t lease_seen_ns_ = 0;
  bool lease_renewed_ = false;    // while it was looked at
  std::optional<Error> refused_;  // by one at whose door it knocked: why
  std::optional<std::int64_t> came_ns_;
  std::uint64_t newest_ = 0;  // the view that it wants to join,
  std::int64_t newest_since_ns_ = 0;
};

}  // namespace muster::train
