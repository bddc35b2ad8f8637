// Controller: events in, engine, plan journaled, then pool actions.
//
// One thread calls it. Commands and pool events become model::Events, which are folded into the
// state at once and written together by Turn(); what they cause outside (answers, starts, stops) is
// held back until they are durable. When writing fails, what was not written is forgotten: the
// caller answers with the error and calls Recover(), which is the same way a restarted daemon
// takes. So there is one path for a crash, a full disk and a start, and it is exercised all the
// time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/result.h"
#include "control/access.h"
#include "control/outlook.h"
#include "control/reservations.h"
#include "engine/policy_file.h"
#include "model/event.h"
#include "model/spec_codec.h"
#include "pools/pool.h"
#include "sim/engine_view.h"
#include "state/mark.h"
#include "state/state.h"
#include "state/store.h"

namespace muster::control {

using engine::PolicyFile;
using engine::ReadPolicyFile;
using model::JobNumber;
using sim::EngineView;

// Where the daemon keeps its things, for whoever looks after the machine.
struct Host {
  std::string state;
  std::string run;          // empty: the pools choose
  std::string certificate;  // empty: no TLS
};

struct Settings {
  EngineView::Settings engine;
  std::string version;
  Host host{};
  std::int64_t start_timeout_ms = 60'000;  // a pool must say that a worker runs
  std::int64_t stop_slack_ms = 15'000;     // beyond the graces, before a worker is killed again
  std::int64_t first_back_off_ms = 1'000;  // doubled with every failure
  std::int64_t most_back_off_ms = 300'000;
  std::uint64_t snapshot_every = 50'000;  // events
  std::uint64_t keep_events = 1'000'000;
  std::int64_t keep_history_ms = 90LL * 86'400'000;
  std::int64_t live_jobs_max = 1'000'000;
};

// Who asks, and whether it is only to be found out what would become of it.
struct By {
  // NOLINTBEGIN(google-explicit-constructor): a name alone is a `By`
  By(std::string user, bool only_check = false) : who(std::move(user)), dry_run(only_check) {}
  By(const char* user) : who(user) {}
  // NOLINTEND(google-explicit-constructor)
  std::string who;
  bool dry_run = false;
};

struct Submission {
  model::Job spec;
  std::string user;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  // Of the submitter, for repeated requests; may be empty. Of several the first one's counts.
  std::string key;
  // What was asked for with it: the same key for something else is a mistake.
  std::string digest{};
  std::string at{};  // its place in the request, for errors: "jobs[1]"
  model::AmountsAt amounts = model::AmountsAt::kResources;  // in its file, likewise
  // Mistakes were found in its file already: only its queue is looked at, where that is known.
  enum class Broken : std::uint8_t { kNo, kYes, kQueueToo };
  Broken broken = Broken::kNo;
  bool held = false;
  bool dry_run = false;
  const Access* access = nullptr;  // of the submitter; null: it may see all
};

// How the controller itself fares, since it was started.
struct Vitals {
  Histogram commits;
  Histogram cycles;
  std::uint64_t commit_errors = 0;
  bool writable = true;  // the last commit went well
};

class Runs;

class Controller {
 public:
  struct Ports {
    Clock& clock;
    state::Store& store;
    std::vector<pools::Pool*> pools;
    state::MarkFile* mark = nullptr;  // none: a journal whose end is missing is not noticed
    // Told of everything that has been written, in order.
    std::function<void(const Controller&, std::span<const state::Record>)> written = {};
    Runs* runs = nullptr;  // none: what jobs report is not kept
  };
  Controller(Ports ports, Settings settings);
  ~Controller();

  // Reads the store, builds the cluster, takes up what runs. Also after a Turn() that failed.
  Result<void> Recover();

  // --- Commands. Each is complete or changes nothing; `by` is who asked.
  Result<JobNumber> Submit(Submission submission);
  // All of them or none; a job may follow one before it in the list.
  Result<std::vector<JobNumber>> SubmitAll(std::vector<Submission> submissions);
  Result<void> Cancel(JobNumber job, const By& by);
  Result<void> Suspend(JobNumber job, const By& by);
  Result<void> Resume(JobNumber job, const By& by);  // also releases a hold
  Result<void> Hold(JobNumber job, const By& by);
  Result<void> Requeue(JobNumber job, const By& by);
  Result<void> Scale(JobNumber job, int minimum, int maximum, const By& by);
  Result<void> SetPriority(JobNumber job, std::int64_t priority, const By& by);
  Result<void> MarkNode(const std::string& node, bool cordoned, bool draining, const By& by);
  Result<void> AskCheckpoint(JobNumber job, const By& by);
  Result<void> DeleteQueue(const std::string& queue, const By& by);
  Result<void> SetUser(model::UserSet user);
  Result<void> RemoveUser(const std::string& name, const By& by);
  Result<void> MakeToken(model::TokenMade token, bool dry_run = false);
  Result<void> RevokeToken(const std::string& id, const By& by);
  Result<void> ApplyQueues(std::vector<model::Queue> queues, const By& by);
  // Each returns what was written, or would be; nothing is where that is in force already.
  Result<model::PolicyApplied> ApplyPolicy(PolicyFile file, const By& by);
  Result<model::PolicyApplied> UndoPolicy(const By& by);  // the one before the one in force
  // What it keeps; one of the same name is replaced.
  Result<model::Reservation> SetReservation(const ReservationWish& wish, const By& by);
  Result<void> RemoveReservation(const std::string& name, const By& by);

  // What a request with this key did, so that it is not done again; an error when the key was used
  // for something else; null: it is new.
  Result<const state::RequestRecord*> Repeated(const std::string& user, const std::string& key,
                                               const std::string& digest) const;
  void Remember(model::RequestAnswered answered);

  // Is written with what was asked for, or not at all. `at_ms` is filled in when it is 0.
  void Audit(state::AuditRow row);

  // One round: what pools report, what is due, the engine, the journal, and then the effects.
  Result<void> Turn();
  // Milliseconds until there is something to do by itself; at most a second.
  std::int64_t DueInMs();
  // At the end: a snapshot, so that the next start has nothing to read.
  Result<void> Finish();

  // --- Reading
  // Whether state() is what was written: not between a write that failed and the journal being read
  // again.
  bool knows_state() const { return journal_read_; }
  const state::State& state() const { return state_; }
  EngineView& engine() { return engine_; }
  state::Store& store() { return ports_.store; }
  std::int64_t NowMs();
  Runs* runs() { return ports_.runs; }
  pools::Pool* PoolOf(const std::string& node);
  // Everything the engine saw since its cluster was built; what `muster snapshot replay` takes.
  Result<std::string> Export();
  const Settings& settings() const { return settings_; }
  const Vitals& vitals() const { return vitals_; }
  const Outlook& outlook() const { return outlook_; }
  struct Search {
    std::string user;                // its own jobs come before those of others
    const Access* access = nullptr;  // what it may not see is not there; null: it sees all
    bool whole_names = false;        // no beginnings of names

    bool Sees(const std::string& owner, const std::string& queue) const {
      return access == nullptr || access->Sees(owner, queue);
    }
  };
  // Number of a name, an id, or a unique beginning of a name.
  Result<JobNumber> Resolve(const std::string& word, const Search& search) const;
  const std::shared_ptr<const Members>& members() const { return members_; }

 private:
  using StopWhy = model::StopWhy;
  struct Effect {
    enum class Kind : std::uint8_t {
      kStart,
      kStop,
      kLeave,
      kKill,
      kForget,
      kCheckpoint,
      kWarnIdle,
      kResize
    };
    Kind kind;
    pools::LaunchKey key;
    std::string node;  // empty: whichever pool knows it
  };

  void Emit(model::EventBody body);
  bool Own(state::Record& record) const;  // whose it is; false: not known
  Result<void> Commit();
  void Release();
  Result<void> MaybeSnapshot();
  Result<void> ReadJournal();
  Result<void> JoinNodes();
  void AdoptAll();
  void RecallRuntimes();
  void TakeUp(const pools::LaunchKey& key, pools::Found found);

  void Handle(const pools::PoolEvent& event);
  void HandleReport(const pools::LaunchKey& key);
  void HandleSpeed(const pools::PoolEvent& event);
  void HandleEnd(const pools::LaunchKey& key, const model::ExitFacts& exit);
  void AfterExit(JobNumber job, std::uint32_t worker, const model::ExitFacts& exit);
  void Settle(JobNumber job, std::uint32_t worker, const model::ExitFacts& exit);
  void FailGang(JobNumber job, std::uint32_t worker, const model::ExitFacts& exit);
  void Regroup(JobNumber job);
  void Start(JobNumber job);
  void Leave(const model::WorkerLeaving& order, Effect::Kind how);
  void EndUnordered();
  void StopJob(JobNumber job, StopWhy why, const std::string& by);
  void EndJob(JobNumber job, model::End end, StopWhy why, std::uint32_t worker,
              const model::ExitFacts& exit);
  Result<void> RunCycle();
  void Carry(const model::Plan& plan);
  void TellSize(JobNumber job);
  contract::Resize MembersNow(JobNumber job) const;
  void CheckDue();
  void CheckReservations();
  void CheckJob(JobNumber job);
  void CheckIdle(const state::JobRecord& job);
  std::int64_t IdleLimitMs(const state::JobRecord& job) const;
  void Arm(std::int64_t at_ms, JobNumber job);
  void FoldUse();
  pools::Launch LaunchOf(const pools::LaunchKey& key) const;
  Result<const state::JobRecord*> Live(JobNumber job) const;
  Result<void> ForEachTask(JobNumber job, const std::function<Result<void>(JobNumber)>& act);
  Result<void> ScaleTask(JobNumber job, int minimum, int maximum, const By& by);
  JobNumber Named(const std::string& name, const Search& search, bool mine) const;
  Result<JobNumber> ByBeginning(const std::string& word, const Search& search) const;
  Result<std::vector<model::Follows>> ResolveFollows(const Submission& submission);
  std::vector<Error> Faults(const Submission& submission, const std::set<std::string>& batch,
                            std::vector<model::Follows>& follows);
  Result<void> CheckAll(const std::vector<Submission>& submissions,
                        std::vector<std::vector<model::Follows>>& follows);
  Result<void> PutTree(std::vector<model::Queue> tree, const By& by);

  Ports ports_;
  Settings settings_;
  Vitals vitals_;
  state::State state_;
  EngineView engine_;
  Outlook outlook_;
  std::vector<state::Record> batch_;
  std::vector<state::HistoryRow> history_;
  std::vector<state::AuditRow> audits_;
  std::vector<Effect> effects_;
  // Launches that a pool was told of, or was found to have, and since when: only these have an end
  // to report.
  std::map<pools::LaunchKey, std::int64_t> ordered_;
  std::vector<pools::LaunchKey> unordered_;  // told to go before any pool heard of them
  std::deque<JobNumber> refused_;            // followers whose condition cannot come true any more
  bool refusing_ = false;
  std::set<pools::LaunchKey> starting_;  // among the effects
  std::set<std::pair<std::int64_t, JobNumber>> due_;
  std::unordered_map<JobNumber, std::int64_t> due_of_;
  std::int64_t reservations_due_ms_ = 0;  // when the next one begins or ends
  bool journal_read_ = false;
  bool built_ = false;  // the engine's cluster is there
  bool runtimes_recalled_ = false;
  bool dirty_ = true;  // the engine has something new to look at
  std::int64_t next_cycle_ms_ = 0;
  std::int64_t wall_offset_ms_ = 0;
  std::int64_t last_ms_ = 0;
  std::int64_t use_folded_ms_ = 0;
  std::uint64_t snapshot_at_ = 0;
  std::uint64_t built_at_ = 0;
  std::int64_t built_ms_ = 0;
  std::map<std::string, std::string> pool_of_node_;
  std::shared_ptr<const Members> members_;  // of the queues as they are now
};

// The role of each worker, in the engine's order of workers.
std::vector<int> WorkerRoles(const model::Job& spec);
// Whether its workers must all start anew when their number changes.
bool NeedsRegroup(const model::Job& spec);
// Whether a worker of this role serves the others and never ends by itself.
bool IsService(const model::Role& role);
// Whether the job is done when its first worker is.
bool FirstWorkerDecides(const model::Job& spec);

}  // namespace muster::control
