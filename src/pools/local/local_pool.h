// LocalPool: runs workers as processes of this machine, each under a shim that outlives the daemon.
//
// A launch has a folder with a lock that is taken before its shim exists and held exactly as long
// as the shim lives; the mark `begun` says that a worker may have run. The two together tell, after
// any crash, whether a launch is alive, has ended, died, or never was. Records of shims arrive as
// files in the spool and are kept until the controller says that their content is in the journal.
// Starting costs a few hundred microseconds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "contract/tell.h"
#include "device/gpu_use.h"
#include "model/node.h"
#include "pools/local/activity.h"
#include "pools/local/orders.h"
#include "pools/local/speed_gauge.h"
#include "pools/pool.h"

namespace muster::pools {

class LocalPool final : public Pool {
 public:
  struct Options {
    std::string name = "local";
    std::string state_dir;  // absolute; exists
    // For what lives no longer than the machine runs: locks, sockets, records on their way. On a
    // disk each of them would wait for the journal's fsync. Empty: RunFolder(state_dir).
    std::string run_dir;
    std::string shim;  // the program
    model::VirtualGpus virtual_gpus;
    std::string cgroup_root = "muster";
    std::map<std::string, std::string> container_env;  // of the program that runs images
    IdleThresholds idle;
  };
  static Result<std::unique_ptr<LocalPool>> Open(Options options, Clock& clock);
  ~LocalPool() override;

  const std::string& name() const override { return options_.name; }
  Result<std::vector<model::Node>> Discover() override;
  void Start(Launch launch) override;
  void Stop(const LaunchKey& key) override;
  void Kill(const LaunchKey& key) override;
  void Leave(const LaunchKey& key) override;
  void Resize(const LaunchKey& key, const contract::Resize& members) override;
  void AskCheckpoint(const LaunchKey& key, const std::string& signal) override;
  Found Adopt(const LaunchKey& key) override;
  std::vector<LaunchKey> Present() override;
  void Forget(const LaunchKey& key) override;
  std::vector<PoolEvent> Poll() override;
  std::int64_t IdleMs(const LaunchKey& key) override;
  void Show(const LaunchKey& key, const std::string& text) override;
  std::optional<Notebook> NotebookOf(const LaunchKey& key) override;
  std::optional<contract::Report> ReportOf(const LaunchKey& key) override;
  Result<Door> Attach(const LaunchKey& key, const Screen& screen) override;
  Result<Door> Exec(const LaunchKey& key, const std::vector<std::string>& command, bool terminal,
                    const Screen& screen) override;
  Result<Loopback> ListensOn(const LaunchKey& key, int port) override;
  std::string LogPath(model::JobNumber job, std::uint32_t worker, bool err) override;

  int doorbell() const { return inotify_; }  // readable when there is something to Poll()
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Live {
    int pid = 0;  // of the worker, once it is known
    Activity activity;
    std::vector<int> cores;  // that it has for itself
    bool watched = false;    // somebody asks whether it is idle
    std::map<int, std::uint64_t> gpus_seen{};
    std::int64_t size_at_ms = 0;  // of the newest change of size that was passed on
  };

  LocalPool(Options options, Clock& clock) : options_(std::move(options)), clock_(clock) {}
  Result<void> Spawn(const Launch& launch);
  void ReadSpool(std::vector<PoolEvent>& out);
  void ReadRecord(const std::string& name, std::vector<PoolEvent>& out);
  void ReadReport(const LaunchKey& key, std::vector<PoolEvent>& out);
  void CheckShims(std::vector<PoolEvent>& out);
  Live NewLive(const LaunchKey& key) const;
  void LookAt(const LaunchKey& key, Live& live);
  std::optional<int> GpuPercent(const LaunchKey& key, Live& live);
  void SendTells();
  void GiveCores(contract::LaunchOrder& order) const;
  std::vector<int> CoresOf(const LaunchKey& key) const;
  bool LockIsFree(const LaunchKey& key) const;
  bool HasExit(const LaunchKey& key) const;

  Options options_;
  Clock& clock_;
  LocalFolders folders_;
  LocalMachine machine_;
  std::vector<std::string> notes_;
  int inotify_ = -1;
  bool scan_ = true;  // read the whole spool: at the start, and when notices were lost
  std::vector<PoolEvent> ready_;
  std::map<LaunchKey, Live> live_;
  std::map<model::JobNumber, SpeedGauge> speeds_;
  std::set<LaunchKey> ended_;                  // reported, not yet forgotten
  std::map<LaunchKey, contract::Tell> tells_;  // that have not been taken yet
  std::int64_t checked_ms_ = 0;
  device::GpuUse gpu_use_;
  bool restarted_ = false;  // the machine was started since the daemon last ran
};

// A folder in memory where there is one for this user, its name made from the state folder's.
std::string RunFolder(const std::string& state_dir);

}  // namespace muster::pools
