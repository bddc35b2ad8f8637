// Pool: the port to whatever runs workers.
//
// A pool carries out and reports; it never decides. Everything it is told is in the journal before
// it is told. Calls return at once; what came of them arrives by Poll(). A launch has a key that is
// never used twice, so that an order that is repeated after a crash can be recognised: starting a
// launch that was started is nothing, and a launch nobody started may be started again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "contract/lines.h"
#include "contract/records.h"
#include "model/event.h"
#include "model/job.h"
#include "model/node.h"

namespace muster::pools {

struct LaunchKey {
  model::JobNumber job = 0;
  std::uint32_t worker = 0;
  std::uint32_t launch = 0;
  std::string Name() const;  // "17.0.2"
  static Result<LaunchKey> Parse(std::string_view name);
  friend bool operator==(const LaunchKey&, const LaunchKey&) = default;
  friend auto operator<=>(const LaunchKey&, const LaunchKey&) = default;
};

// One worker of the gang, as the others see it.
struct GangMember {
  std::uint32_t worker = 0;
  int role = 0;  // index in the spec
  std::string node;
  std::uint64_t devices = 0;
};

struct Launch {
  LaunchKey key;
  std::shared_ptr<const model::Job> spec;
  std::string job_name;
  std::string user;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string node;
  std::uint64_t devices = 0;
  int role = 0;
  std::uint32_t restarts = 0;
  std::uint32_t generation = 0;
  std::vector<GangMember> members;  // all of the gang, this one too, in the order of their ranks
  model::JobNumber array = 0;
  std::int64_t array_index = 0;
};

struct PoolEvent {
  enum class Kind : std::uint8_t {
    kStarted,
    kEnded,
    kCheckpoint,
    kNodeUp,
    kNodeDown,
    kSpeed,
    kResized,
    kReport
  };
  Kind kind = Kind::kStarted;  // of kReport there is only the key: ReportOf() has it
  LaunchKey key;
  std::int64_t at_ms = 0;
  std::int32_t pid = 0;
  std::string text;  // how limits are kept; why a node went; the node's name is in `node`
  std::string node;
  std::int64_t step = -1;
  model::ExitFacts exit;
  // kSpeed: with no GPUs (0) it is of all that the job has, and the samples are those of its batch.
  model::Speed speed;
  std::int64_t workers = 0;   // kResized; kSpeed of all GPUs: that took part
  std::int64_t pause_ms = 0;  // kResized
};

// What became of a launch that the journal knows, found after a restart.
enum class Found : std::uint8_t {
  kAlive,         // runs on; its end will be reported
  kEnded,         // its end is about to be reported by Poll()
  kNeverStarted,  // nothing of it ever ran
  kDied,          // it ran, and nobody saw how it ended; what was left of it has been killed
};

struct Screen {
  int rows = 24;
  int cols = 80;
};

// A Unix socket that leads to a worker, and what is said there first.
struct Door {
  std::string socket;
  std::string request;
};

struct Notebook {
  int port = 0;  // of 127.0.0.1
  std::string token;
};

class Pool {
 public:
  virtual ~Pool() = default;
  virtual const std::string& name() const = 0;
  virtual bool simulated() const { return false; }
  virtual Result<std::vector<model::Node>> Discover() = 0;
  virtual void Start(Launch launch) = 0;
  // Checkpoint signal, grace, SIGTERM, SIGKILL; as the job's spec says.
  virtual void Stop(const LaunchKey& key) = 0;
  virtual void Kill(const LaunchKey& key) = 0;
  // The same as stopping, for a worker that the others of its job go on without.
  virtual void Leave(const LaunchKey& key) { Stop(key); }
  // From the next boundary on these are the workers; who does not speak the contract is not told.
  virtual void Resize(const LaunchKey& /*key*/, const contract::Resize& /*members*/) {}
  // The worker goes on; `signal` is for those that do not speak the contract.
  virtual void AskCheckpoint(const LaunchKey& /*key*/, const std::string& /*signal*/) {}
  virtual Found Adopt(const LaunchKey& key) = 0;
  // The launches that live there now, whoever started them.
  virtual std::vector<LaunchKey> Present() { return {}; }
  // The end of the launch is in the journal: what was kept of it can go.
  virtual void Forget(const LaunchKey& key) = 0;
  virtual std::vector<PoolEvent> Poll() = 0;
  // Milliseconds without use of a processor or a GPU above the pool's thresholds and without a key
  // typed at a terminal; -1: not known.
  virtual std::int64_t IdleMs(const LaunchKey& /*key*/) { return -1; }
  // A line for whoever sits at the worker, and for its log.
  virtual void Show(const LaunchKey& /*key*/, const std::string& /*text*/) {}
  // Where its notebook server listens; none: it is not one, or does not live.
  virtual std::optional<Notebook> NotebookOf(const LaunchKey& /*key*/) { return {}; }
  // What a worker that speaks the contract last said about itself; none: it said nothing.
  virtual std::optional<contract::Report> ReportOf(const LaunchKey& /*key*/) { return {}; }
  // Its terminal; another program beside it, as its user and within its limits.
  virtual Result<Door> Attach(const LaunchKey& /*key*/, const Screen& /*screen*/) {
    return Fail(
        ErrorCode::kInvalid, "workers of this pool cannot be entered",
        "it is simulated: nothing runs there but time; use a job of a pool with real workers");
  }
  virtual Result<Door> Exec(const LaunchKey& key, const std::vector<std::string>& /*command*/,
                            bool /*terminal*/, const Screen& screen) {
    return Attach(key, screen);
  }
  // Whether a process of the worker would get what is sent to that port of this machine, and by
  // which of its addresses.
  enum class Loopback : std::uint8_t { kV4, kV6 };
  virtual Result<Loopback> ListensOn(const LaunchKey& /*key*/, int /*port*/) {
    return Fail(ErrorCode::kInvalid, "ports of this pool's workers cannot be reached",
                "it is simulated: nothing listens there; use a job of a pool with real workers");
  }
  // The file that holds the output of one worker; empty: this pool has none.
  virtual std::string LogPath(model::JobNumber /*job*/, std::uint32_t /*worker*/, bool /*err*/) {
    return {};
  }
};

}  // namespace muster::pools
