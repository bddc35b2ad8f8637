// Event: the only way state changes.
//
// An event is a fact or a decision that has been made; folding it needs no further decision, so
// that a journal read again gives the same state. Times, places and causes are in it. Kinds are
// numbered for ever: new ones go to the end of the variant, old ones stay readable. `CycleRan`
// marks where the engine was asked; what it answered follows as WorkerPlaced and WorkerLeaving.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/document.h"
#include "model/job.h"
#include "model/node.h"
#include "model/plan.h"
#include "model/queue.h"
#include "model/reservation.h"

namespace muster::model {

using JobNumber = std::uint64_t;  // never used twice; 0: none

// Why a job, or one of its workers, was told to stop.
enum class StopWhy : std::uint8_t {
  kNone,
  kPaused,     // by the scheduler; comes back by itself
  kShrunk,     // by the scheduler; the job goes on with fewer workers
  kMoved,      // by the scheduler; has another place in sight
  kCancelled,  // by a person
  kSuspended,  // by a person, until resumed
  kRequeued,   // by a person; starts again
  kTimeLimit,
  kIdleLimit,
  kMemberFailed,  // another worker of the gang has failed
  kMemberDone,    // the worker that does the work has ended
  kRegrouped,     // the gang changed size, and its framework needs all to start anew
  kNeverStarted,  // the pool did not answer in time
  kDependency,    // a job it was to follow ended otherwise
};
std::string_view Name(StopWhy why);

enum class End : std::uint8_t { kSucceeded, kFailed, kCancelled };
std::string_view Name(End end);

struct Follows {
  JobNumber job = 0;
  AfterCondition condition = AfterCondition::kOk;
  friend bool operator==(const Follows&, const Follows&) = default;
};

// How a worker's process ended.
struct ExitFacts {
  int exit_code = -1;
  int signal = 0;
  bool oom = false;
  bool stopped = false;  // after it was told to
  bool lost = false;     // nobody saw how: its shim or its node died
  std::string failure;   // it could not be started: why
  std::int64_t ended_ms = 0;
  std::int64_t max_rss_bytes = 0;
  std::int64_t cpu_ms = 0;

  bool Succeeded() const { return exit_code == 0 && signal == 0 && !lost && failure.empty(); }
  friend bool operator==(const ExitFacts&, const ExitFacts&) = default;
};

struct DaemonStarted {
  std::string version;
};
struct NodeJoined {
  Node node;
};
struct NodeWent {
  std::string node;
  bool up = false;
  std::string why;
};
struct NodeMarked {
  std::string node;
  bool cordoned = false;
  bool draining = false;
  std::string by;
};
struct QueuesApplied {
  std::vector<Queue> queues;  // the whole tree
  std::string by;
};
struct JobSubmitted {
  JobNumber job = 0;  // an array's tasks have the numbers that follow
  std::shared_ptr<const Job> spec;
  std::string user;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<Follows> follows;
  std::string key;                  // the submitter's own, so that a repeated request is one job
  std::int64_t expected_ms = 0;     // how long jobs like it have run; 0: nothing is known
  std::uint32_t expected_from = 0;  // in what they are like it, the nearest is 1; 0: not told
};
struct JobHeld {
  JobNumber job = 0;
  bool on = false;
  std::string by;
};
struct JobChanged {
  JobNumber job = 0;
  std::shared_ptr<const Job> spec;
  std::string what;
  std::string by;
  bool once_stopped = false;  // it runs with more workers than this leaves it, and is stopped first
};
struct JobStopping {
  JobNumber job = 0;
  StopWhy why = StopWhy::kNone;
  std::string by;
};
struct JobResumed {
  JobNumber job = 0;
  std::string by;
};
struct JobRequeued {
  JobNumber job = 0;
  StopWhy why = StopWhy::kNone;
  bool counts = false;  // against the retries
  std::int64_t not_before_ms = 0;
};
struct JobEnded {
  JobNumber job = 0;
  End end = End::kSucceeded;
  StopWhy why = StopWhy::kNone;
  std::uint32_t worker = 0;  // whose exit decided it
  ExitFacts exit = {};
};
struct CycleRan {
  bool complete = true;
  std::int64_t steps = 0;
  std::int64_t now_ms = 0;  // the time that the engine was given
};
struct WorkerPlaced {
  JobNumber job = 0;
  std::uint32_t worker = 0;
  std::uint32_t launch = 0;  // counts the starts of this worker
  std::string node;
  std::uint64_t devices = 0;
  ActionKind action = ActionKind::kStart;
  bool again = false;  // on the place it kept while its gang was formed anew: no decision
};
struct WorkerLeaving {
  JobNumber job = 0;
  std::uint32_t worker = 0;
  StopWhy why = StopWhy::kNone;
  Rule rule = Rule::kFreeCapacity;
  JobNumber cause = 0;  // for whom it leaves; 0: nobody
  std::int64_t lost_gpu_ms = -1;
};
struct WorkerStarted {
  JobNumber job = 0;
  std::uint32_t worker = 0;
  std::uint32_t launch = 0;
  std::int32_t pid = 0;
  std::int64_t at_ms = 0;
  std::string limits;  // how its limits are kept
};
struct WorkerEnded {
  JobNumber job = 0;
  std::uint32_t worker = 0;
  std::uint32_t launch = 0;
  ExitFacts exit = {};
};
struct CheckpointTaken {
  JobNumber job = 0;
  std::int64_t at_ms = 0;
  std::int64_t step = -1;
};
// What a training job tells of its speed: one step that it took, and what it allows itself.
struct Speed {
  std::int32_t nodes = 1;
  std::int32_t gpus = 1;
  std::int32_t samples = 1;      // of a GPU in one pass
  std::int64_t compute_us = 0;   // of the step, without synchronising
  std::int64_t step_us = 0;      // all of it
  std::int64_t noise_milli = 0;  // of the gradient: its variance against its square, thousandths
  std::int32_t first_batch = 1;  // the batch that it was written for; noise is meant at that
  std::int32_t most_batch = 1;
  std::int32_t least_samples = 1;  // that a GPU may take in one pass
  std::int32_t most_samples = 1;
  std::string gpu_type = {};  // that it ran on; empty: the one that it holds
  friend bool operator==(const Speed&, const Speed&) = default;
};
struct SpeedReported {
  JobNumber job = 0;
  Speed speed;
};
// A gang works on with so many workers, and what the change cost, as the workers told.
struct JobResized {
  JobNumber job = 0;
  std::int64_t at_ms = 0;
  std::int64_t workers = 0;
  std::int64_t pause_ms = 0;
  std::int64_t step = -1;  // -1: not told
};
struct NumbersSkipped {
  JobNumber next = 0;  // the end of the journal was lost, and with it the jobs below this number
};
struct UseNoted {
  std::map<std::string, std::int64_t> gpu_ms;  // by queue, decayed
};

struct UserSet {  // made, or changed
  std::string name;
  std::string role;  // "viewer", "user", "admin"
  std::vector<std::string> groups;
  std::string by;
};
struct UserRemoved {  // and with it its tokens
  std::string name;
  std::string by;
};
struct TokenMade {
  std::string id;  // short and public
  std::string name;
  std::string user;
  std::string hash;             // SHA-256 of the secret, in hex; the secret itself is nowhere
  std::int64_t expires_ms = 0;  // 0: never
  std::string role;             // at most this one: "viewer", "user"; empty: all that the user may
  std::string by;
};
struct TokenRevoked {
  std::string id;
  std::string by;
};
struct JobIdle {
  JobNumber job = 0;
  std::int64_t idle_ms = 0;
  std::int64_t released_at_ms = 0;  // unless it is used before; 0: it is used again
};
// A request with a key of its sender's choice was carried out; repeated, it is answered with this.
struct RequestAnswered {
  std::string user;
  std::string key;
  std::string digest;  // of what was asked for
  std::string object;  // what it was about, for people
  std::int32_t status = 200;
  std::string answer;  // JSON; empty: it cannot be given again
};
struct ReservationSet {  // made, or changed
  Reservation reservation;
  std::string by;
};
struct ReservationRemoved {
  std::string name;
  std::string queue;  // whose it was
  std::string by;
  std::string why;  // "over": its time has come to its end; empty: it was taken back
};

// How the scheduler decides from now on; see engine/policy_settings.h for the settings.
struct PolicyApplied {
  std::uint64_t id = 0;  // counted from 1; 0 is what the daemon came with, the defaults
  std::string name;
  std::string about;
  std::map<std::string, std::string> settings;  // what differs from the defaults
  std::string by;
  std::uint64_t undoes = 0;  // the one that this takes back; 0: it is a new one
  std::int64_t before = -1;  // the one that comes back when this is undone; -1: none
};

using EventBody =
    std::variant<DaemonStarted, NodeJoined, NodeWent, NodeMarked, QueuesApplied, JobSubmitted,
                 JobHeld, JobChanged, JobStopping, JobResumed, JobRequeued, JobEnded, CycleRan,
                 WorkerPlaced, WorkerLeaving, WorkerStarted, WorkerEnded, CheckpointTaken, UseNoted,
                 NumbersSkipped, UserSet, UserRemoved, TokenMade, TokenRevoked, JobIdle,
                 RequestAnswered, SpeedReported, PolicyApplied, ReservationSet, ReservationRemoved,
                 JobResized>;

struct Event {
  std::int64_t at_ms = 0;
  EventBody body;
};

std::string_view KindOf(const EventBody& body);  // "worker-placed"
JobNumber JobOf(const EventBody& body);          // 0: it is about no job
std::string EncodeEvent(const EventBody& body);
Result<EventBody> DecodeEvent(std::string_view bytes);
DocNode EventToNode(const EventBody& body);  // its fields, for people: no hash of a token, no keys

}  // namespace muster::model
