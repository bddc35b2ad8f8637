#include "pools/local/local_pool.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "contract/door.h"
#include "contract/lines.h"
#include "contract/records.h"
#include "device/machine_probe.h"
#include "pools/local/leftovers.h"
#include "pools/local/notebook.h"
#include "pools/local/processes.h"

namespace muster::pools {
namespace {

constexpr std::int64_t kCheckEveryMs = 2'000;
constexpr std::int64_t kLookEveryMs = 1'000;     // processor time is counted in hundredths
constexpr std::int64_t kCheckpointMs = 300'000;  // within which a worker that was asked should save
constexpr int kOrderFd = 3;                      // where the shim expects them
constexpr int kLockFd = 4;

class Descriptor {
 public:
  // Above the numbers that the shim is given.
  explicit Descriptor(int fd) : fd_(fd < 0 ? fd : ::fcntl(fd, F_DUPFD_CLOEXEC, 10)) {
    if (fd >= 0) ::close(fd);
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

tl::unexpected<Error> Errno(const std::string& what) {
  return Fail(ErrorCode::kUnavailable, what + ": " + std::strerror(errno));
}

contract::Tell Message(const contract::Told& told) {
  std::string line = contract::Encode(told);
  line.pop_back();  // the shim ends it itself
  return {contract::Tell::Kind::kMessage, -1, "", line};
}

Result<void> SpawnShim(const std::string& shim, const Descriptor& order, const Descriptor& lock) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, order.get(), kOrderFd);
  posix_spawn_file_actions_adddup2(&actions, lock.get(), kLockFd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  std::string name = "muster-shim";
  std::array<char*, 2> argv = {name.data(), nullptr};
  std::array<char*, 1> envp = {nullptr};
  pid_t pid = 0;
  const int failed =
      ::posix_spawn(&pid, shim.c_str(), &actions, &attributes, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed == 0) return {};
  errno = failed;
  return Errno("cannot start " + shim);
}

}  // namespace

std::string RunFolder(const std::string& state_dir) {
  // FNV-1a: a short name that is the same for the same folder; clashes would need an enemy.
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : state_dir) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  const std::string name = "muster-" + std::to_string(hash % 0xFFFFFFFFULL);
  for (const std::string& parent :
       {std::string("/run"), "/run/user/" + std::to_string(::geteuid()), std::string("/dev/shm")}) {
    struct statfs facts {};
    if (::access(parent.c_str(), W_OK) != 0 || ::statfs(parent.c_str(), &facts) != 0) continue;
    if (facts.f_type != TMPFS_MAGIC) continue;
    std::string folder = parent;
    folder += "/";
    folder += name;
    struct stat owner {};
    // Where everybody may write, somebody else may have been there first.
    const bool there = ::mkdir(folder.c_str(), 0711) == 0 || errno == EEXIST;
    if (there && ::lstat(folder.c_str(), &owner) == 0 && S_ISDIR(owner.st_mode) &&
        owner.st_uid == ::geteuid()) {
      return folder;
    }
  }
  return state_dir + "/run";
}

Result<std::unique_ptr<LocalPool>> LocalPool::Open(Options options, Clock& clock) {
  std::unique_ptr<LocalPool> pool(new LocalPool(std::move(options), clock));
  auto& folders = pool->folders_;
  folders.state = pool->options_.state_dir;
  folders.run = pool->options_.run_dir.empty() ? RunFolder(folders.state) : pool->options_.run_dir;
  if (::access(pool->options_.shim.c_str(), X_OK) != 0) {
    return Fail(ErrorCode::kNotFound, pool->options_.shim + " is not there or cannot be run",
                "muster-shim is built and installed beside musterd");
  }
  std::error_code error;
  for (const auto& folder : {folders.Spool(), folders.state + "/logs", folders.state + "/jobs"}) {
    std::filesystem::create_directories(folder, error);
    if (error) {
      return Fail(ErrorCode::kDenied, "cannot create " + folder + ": " + error.message(),
                  "check who may write there and that the disk has room");
    }
  }
  ::chmod(folders.Spool().c_str(), 0700);
  ::chmod(folders.run.c_str(), 0711);
  const auto boot = ReadFile("/proc/sys/kernel/random/boot_id", 64).value_or("");
  pool->restarted_ = ReadFile(folders.run + "/boot", 64).value_or("") != boot;
  if (pool->restarted_) std::ofstream(folders.run + "/boot") << boot;
  pool->inotify_ = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (pool->inotify_ < 0 ||
      ::inotify_add_watch(pool->inotify_, pool->folders_.Spool().c_str(), IN_MOVED_TO) < 0) {
    return Errno("cannot watch " + pool->folders_.Spool());
  }
  return pool;
}

LocalPool::~LocalPool() {
  if (inotify_ >= 0) ::close(inotify_);
  // The folder in memory goes when nothing of a launch is left in it.
  if (!live_.empty() || ::rmdir(folders_.Spool().c_str()) != 0) return;
  ::unlink((folders_.run + "/boot").c_str());
  ::rmdir(folders_.run.c_str());
}

Result<std::vector<model::Node>> LocalPool::Discover() {
  device::DiscoverOptions wanted;
  wanted.pool = options_.name;
  wanted.virtual_gpus = options_.virtual_gpus;
  auto found = device::DiscoverNode(wanted);
  if (!found) return tl::unexpected(found.error());
  notes_ = found->notes;
  machine_ = LocalMachine{};
  machine_.programs = std::filesystem::path(options_.shim).parent_path();
  machine_.virtual_gpus = options_.virtual_gpus.count > 0;
  if (!machine_.virtual_gpus) {
    for (const auto& gpu : found->gpus) machine_.gpu_uuids.push_back(gpu.uuid);
    for (const auto& gpu : found->node.gpus) machine_.numa_of_gpu.push_back(gpu.numa);
    machine_.cores_of_numa = found->cores_of_numa;
  }
  machine_.container_env = options_.container_env;
  machine_.cgroup_root = ::geteuid() == 0 ? options_.cgroup_root : "";
  return std::vector<model::Node>{found->node};
}

void LocalPool::Start(Launch launch) {
  auto spawned = Spawn(launch);
  if (spawned) {
    live_.insert_or_assign(launch.key, NewLive(launch.key));
    return;
  }
  PoolEvent event;
  event.kind = PoolEvent::Kind::kEnded;
  event.key = launch.key;
  event.at_ms = clock_.WallMs();
  event.exit.failure = Describe(spawned.error());
  event.exit.lost = spawned.error().code == ErrorCode::kUnavailable;  // the machine's fault
  event.exit.ended_ms = event.at_ms;
  ended_.insert(launch.key);
  ready_.push_back(std::move(event));
}

Result<void> LocalPool::Spawn(const Launch& launch) {
  const std::string run = folders_.Run(launch.key);
  if (::mkdir(run.c_str(), 0711) != 0 && errno != EEXIST) return Errno("cannot create " + run);
  const Descriptor lock(::open((run + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0) return Errno("cannot create " + run + "/lock");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return Fail(ErrorCode::kUnavailable, "another launch " + launch.key.Name() + " still lives");
  }
  if (::access((run + "/begun").c_str(), F_OK) == 0) {
    // By a journal that had gone further than the one put back since: the next name is free.
    return Fail(ErrorCode::kUnavailable, "launch " + launch.key.Name() + " was started before");
  }
  auto order = MakeOrder(launch, folders_, machine_);
  if (!order) return tl::unexpected(order.error());
  if (::mkdir(order->log_dir.c_str(), 0755) != 0 && errno != EEXIST) {
    return Errno("cannot create " + order->log_dir);
  }
  if (machine_.cgroup_root.empty()) GiveCores(*order);
  if (launch.devices != 0 && !machine_.virtual_gpus) {
    const auto& role = launch.spec->roles[static_cast<std::size_t>(launch.role)];
    std::ofstream(run + "/gpus") << launch.devices << ' '
                                 << (role.request.gpu.kind == model::GpuKind::kWhole) << '\n';
  }
  const std::string text = contract::Encode(*order);
  const Descriptor memory(::memfd_create("order", MFD_CLOEXEC));
  if (memory.get() < 0 ||
      ::write(memory.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(memory.get(), 0, SEEK_SET) != 0) {
    return Errno("cannot hand over the order");
  }
  return SpawnShim(options_.shim, memory, lock);
}

// Where no cgroup can limit its processor time a worker gets as many whole cores as it asked for,
// for itself and where possible near its GPUs. They are written down beside its lock, for the next
// daemon. When too few are left it goes without: it is no worse off than the others.
void LocalPool::GiveCores(contract::LaunchOrder& order) const {
  std::set<int> busy;
  for (const auto& [key, live] : live_) busy.insert(live.cores.begin(), live.cores.end());
  std::vector<int> free;
  std::vector<std::vector<int>> from{order.cores};
  from.insert(from.end(), machine_.cores_of_numa.begin(), machine_.cores_of_numa.end());
  for (const auto& cores : from) {
    for (const int core : cores) {
      if (busy.insert(core).second) free.push_back(core);
    }
  }
  const auto wanted = static_cast<std::size_t>((order.cpu_milli + 999) / 1000);
  if (wanted == 0 || free.size() < wanted) return;
  free.resize(wanted);
  std::ofstream file(order.run_dir + "/cores");
  for (const int core : free) file << core << '\n';
  order.cores = std::move(free);
}

std::vector<int> LocalPool::CoresOf(const LaunchKey& key) const {
  std::vector<int> cores;
  if (!machine_.cgroup_root.empty()) return cores;
  std::ifstream file(folders_.Run(key) + "/cores");
  for (int core = 0; file >> core;) cores.push_back(core);
  return cores;
}

void LocalPool::Stop(const LaunchKey& key) {
  tells_[key] = contract::Tell{contract::Tell::Kind::kStop, -1, "", ""};
  SendTells();
}

void LocalPool::Leave(const LaunchKey& key) {
  tells_[key] = contract::Tell{contract::Tell::Kind::kStop, -1, "", "", "", true};
  SendTells();
}

void LocalPool::Resize(const LaunchKey& key, const contract::Resize& members) {
  // Of sizes only the newest counts, and none for a worker that is to end.
  auto& tell = tells_.try_emplace(key, Message(members)).first->second;
  if (tell.kind == contract::Tell::Kind::kMessage) tell = Message(members);
  SendTells();
}

void LocalPool::Kill(const LaunchKey& key) {
  tells_[key] = contract::Tell{contract::Tell::Kind::kKill, -1, "", ""};
  SendTells();
}

void LocalPool::AskCheckpoint(const LaunchKey& key, const std::string& signal) {
  const auto run = folders_.Run(key);
  const auto ask = Message(contract::AskCheckpoint{clock_.WallMs() + kCheckpointMs});
  (void)contract::SendTell(run, ask);  // one that cannot be told has ended or is ending
  if (signal.empty()) return;
  (void)contract::SendTell(run, {contract::Tell::Kind::kSignal, -1, signal, ""});
}

// A shim that has just been started may not listen yet: such tells are sent again.
void LocalPool::SendTells() {
  std::erase_if(tells_, [this](const auto& entry) {
    if (ended_.contains(entry.first)) return true;
    const auto sent = contract::SendTell(folders_.Run(entry.first), entry.second);
    return sent || sent.error().code == ErrorCode::kInvalid;  // too long, now and ever
  });
}

bool LocalPool::LockIsFree(const LaunchKey& key) const {
  const std::string path = folders_.Run(key) + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return true;
  const bool free = ::flock(fd, LOCK_EX | LOCK_NB) == 0;
  ::close(fd);
  return free;
}

bool LocalPool::HasExit(const LaunchKey& key) const {
  return ::access((folders_.Spool() + "/" + key.Name() + ".exit").c_str(), F_OK) == 0;
}

Found LocalPool::Adopt(const LaunchKey& key) {
  // What was reported and perhaps never written is reported again.
  ended_.erase(key);
  scan_ = true;
  if (!LockIsFree(key)) {
    live_.insert_or_assign(key, NewLive(key));
    return Found::kAlive;
  }
  if (HasExit(key)) return Found::kEnded;
  if (restarted_) return Found::kDied;
  if (::access((folders_.Run(key) + "/begun").c_str(), F_OK) != 0) return Found::kNeverStarted;
  KillLeftovers(folders_.Run(key));
  return Found::kDied;
}

std::vector<LaunchKey> LocalPool::Present() {
  std::vector<LaunchKey> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folders_.run, error)) {
    const auto key = LaunchKey::Parse(entry.path().filename().string());
    if (key && !LockIsFree(*key)) found.push_back(*key);
  }
  return found;
}

void LocalPool::Forget(const LaunchKey& key) {
  live_.erase(key);
  ended_.erase(key);
  tells_.erase(key);
  const auto of_job = live_.lower_bound({key.job, 0, 0});
  if (of_job == live_.end() || of_job->first.job != key.job) speeds_.erase(key.job);
  const std::string spool = folders_.Spool() + "/" + key.Name();
  for (const char* kind : {".start", ".report", ".checkpoint", ".exit"}) {
    ::unlink((spool + kind).c_str());
  }
  const std::string run = folders_.Run(key);
  for (const char* name :
       {"/lock", "/begun", "/ctl", "/worker.sock", "/cores", "/door", "/gpus", "/notebook"}) {
    ::unlink((run + name).c_str());
  }
  if (::rmdir(run.c_str()) != 0 && errno == ENOTEMPTY) {
    std::error_code ignored;
    std::filesystem::remove_all(run, ignored);
  }
}

std::vector<PoolEvent> LocalPool::Poll() {
  std::vector<PoolEvent> out = std::exchange(ready_, {});
  ReadSpool(out);
  if (!tells_.empty()) SendTells();
  const auto now = clock_.MonotonicNs() / 1'000'000;
  if (now - checked_ms_ >= kCheckEveryMs) {
    checked_ms_ = now;
    CheckShims(out);
    for (auto& [key, live] : live_) {
      if (live.watched) LookAt(key, live);
    }
  }
  return out;
}

void LocalPool::ReadSpool(std::vector<PoolEvent>& out) {
  alignas(inotify_event) std::array<char, 16'384> buffer;
  std::set<std::string> names;
  for (;;) {
    const auto got = ::read(inotify_, buffer.data(), buffer.size());
    if (got <= 0) break;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto* notice = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      if ((notice->mask & IN_Q_OVERFLOW) != 0) scan_ = true;
      if (notice->len > 0) names.insert(notice->name);
      at += sizeof(inotify_event) + notice->len;
    }
  }
  if (scan_) {
    scan_ = false;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folders_.Spool(), error)) {
      names.insert(entry.path().filename().string());
    }
  }
  // A start sorts behind an exit of the same launch, but both may be there: starts go first.
  for (const bool exits : {false, true}) {
    for (const auto& name : names) {
      if (name.ends_with(".exit") == exits) ReadRecord(name, out);
    }
  }
}

void LocalPool::ReadRecord(const std::string& name, std::vector<PoolEvent>& out) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos || name.front() == '.') return;
  const auto key = LaunchKey::Parse(std::string_view(name).substr(0, dot));
  const std::string kind = name.substr(dot);
  if (!key) return;
  if (kind == ".report") {
    PoolEvent event;
    event.kind = PoolEvent::Kind::kReport;
    event.key = *key;
    out.push_back(std::move(event));
    return ReadReport(*key, out);
  }
  const auto text = ReadFile(folders_.Spool() + "/" + name, 1 << 20);
  if (!text) return;  // forgotten meanwhile
  PoolEvent event;
  event.key = *key;
  if (kind == ".start") {
    const auto record = contract::DecodeStart(*text);
    if (!record) return;
    event.kind = PoolEvent::Kind::kStarted;
    event.at_ms = record->at_ms;
    event.pid = record->pid;
    event.text = record->limits;
    if (const auto live = live_.find(*key); live != live_.end()) live->second.pid = record->pid;
  } else if (kind == ".checkpoint") {
    const auto record = contract::DecodeCheckpoint(*text);
    if (!record) return;
    event.kind = PoolEvent::Kind::kCheckpoint;
    event.at_ms = record->at_ms;
    event.step = record->step;
  } else if (kind == ".exit") {
    const auto record = contract::DecodeExit(*text);
    event.kind = PoolEvent::Kind::kEnded;
    event.exit.lost = !record;  // a record that cannot be read says that it ended, and no more
    if (record) {
      event.exit.exit_code = record->exit_code;
      event.exit.signal = record->signal;
      event.exit.oom = record->oom;
      event.exit.stopped = record->stopped;
      event.exit.failure = record->failure;
      event.exit.ended_ms = record->ended_ms;
      event.exit.max_rss_bytes = record->max_rss_bytes;
      event.exit.cpu_ms = record->cpu_ms;
      event.at_ms = record->ended_ms;
    }
    live_.erase(*key);
    if (!ended_.insert(*key).second) return;
  } else {
    return;
  }
  out.push_back(std::move(event));
}

// Of what a worker says only what the scheduler decides by becomes an event.
void LocalPool::ReadReport(const LaunchKey& key, std::vector<PoolEvent>& out) {
  const auto live = live_.find(key);
  const auto report = ReportOf(key);
  if (live == live_.end() || !report) return;
  PoolEvent event;
  event.key = key;
  for (const auto& size : report->sizes) {
    if (size.at_ms <= live->second.size_at_ms) continue;
    live->second.size_at_ms = size.at_ms;
    event.kind = PoolEvent::Kind::kResized;
    event.at_ms = size.at_ms;
    event.workers = size.workers;
    event.pause_ms = size.pause_ms;
    event.step = size.step;
    out.push_back(event);
  }
  const auto speed = speeds_[key.job].Read(*report);
  if (!speed) return;
  event.kind = PoolEvent::Kind::kSpeed;
  event.at_ms = report->at_ms;
  event.workers = speed->workers;
  event.speed = speed->speed;
  out.push_back(std::move(event));
}

// A shim that died without a word: its lock is free and there is no record of an exit.
void LocalPool::CheckShims(std::vector<PoolEvent>& out) {
  std::vector<LaunchKey> died;
  for (const auto& [key, live] : live_) {
    if (LockIsFree(key) && !HasExit(key)) died.push_back(key);
  }
  for (const auto& key : died) {
    KillLeftovers(folders_.Run(key));
    live_.erase(key);
    if (!ended_.insert(key).second) continue;
    PoolEvent event;
    event.kind = PoolEvent::Kind::kEnded;
    event.key = key;
    event.at_ms = clock_.WallMs();
    event.exit.lost = true;
    event.exit.ended_ms = event.at_ms;
    out.push_back(std::move(event));
  }
}

LocalPool::Live LocalPool::NewLive(const LaunchKey& key) const {
  return Live{0, Activity(clock_.MonotonicNs() / 1'000'000), CoresOf(key)};
}

// GPUs of this launch, as they were written down when it was started.
std::optional<int> LocalPool::GpuPercent(const LaunchKey& key, Live& live) {
  if (machine_.virtual_gpus) return {};
  std::ifstream file(folders_.Run(key) + "/gpus");
  std::uint64_t devices = 0;
  bool whole = false;
  if (!(file >> devices >> whole) || devices == 0) return {};
  const auto pids = ProcessesOf(live.pid);
  std::optional<int> most;
  for (int index = 0; index < 64; ++index) {
    if ((devices >> index & 1) == 0) continue;
    const auto used = gpu_use_.PercentOf(index, pids, whole, live.gpus_seen[index]);
    // One that does not tell may be in use: the worker is not taken for idle.
    most = std::max(most.value_or(0), used.value_or(100));
  }
  return most;
}

void LocalPool::LookAt(const LaunchKey& key, Live& live) {
  const auto now = clock_.MonotonicNs() / 1'000'000;
  if (live.pid == 0 || now - live.activity.looked_ms() < kLookEveryMs) return;
  const auto cpu_ms = CpuMsOf(live.pid, key.Name());
  if (cpu_ms >= 0) live.activity.Look(now, cpu_ms, GpuPercent(key, live), options_.idle);
  const auto report = ReportOf(key);
  if (!report || report->last_input_ms == 0) return;
  const auto ago_ms = std::max<std::int64_t>(0, clock_.WallMs() - report->last_input_ms);
  live.activity.Typed(now - ago_ms);
}

std::int64_t LocalPool::IdleMs(const LaunchKey& key) {
  const auto found = live_.find(key);
  if (found == live_.end() || found->second.pid == 0) return -1;
  found->second.watched = true;
  LookAt(key, found->second);
  return found->second.activity.IdleMs(clock_.MonotonicNs() / 1'000'000);
}

void LocalPool::Show(const LaunchKey& key, const std::string& text) {
  // One that cannot be told has ended or is ending.
  (void)contract::SendTell(folders_.Run(key), {contract::Tell::Kind::kShow, -1, "", "", text});
}

std::optional<Notebook> LocalPool::NotebookOf(const LaunchKey& key) {
  return live_.contains(key) ? FindNotebook(folders_.Run(key)) : std::nullopt;
}

std::optional<contract::Report> LocalPool::ReportOf(const LaunchKey& key) {
  const auto text = ReadFile(folders_.Spool() + "/" + key.Name() + ".report", 1 << 20);
  if (!text) return {};
  auto report = contract::DecodeReport(*text);
  if (!report) return {};
  return *std::move(report);
}

Result<Door> LocalPool::Attach(const LaunchKey& key, const Screen& screen) {
  const contract::Attach wish{{screen.rows, screen.cols}};
  return Door{folders_.Run(key) + "/" + contract::kDoor,
              contract::Encode(contract::DoorRequest{wish})};
}

Result<Door> LocalPool::Exec(const LaunchKey& key, const std::vector<std::string>& command,
                             bool terminal, const Screen& screen) {
  const contract::Exec wish{command, terminal, {screen.rows, screen.cols}, {}};
  return Door{folders_.Run(key) + "/" + contract::kDoor,
              contract::Encode(contract::DoorRequest{wish})};
}

Result<Pool::Loopback> LocalPool::ListensOn(const LaunchKey& key, int port) {
  const auto live = live_.find(key);
  if (live != live_.end() && live->second.pid != 0) {
    for (const bool v6 : {false, true}) {
      if (TreeListensOn(live->second.pid, port, v6)) return v6 ? Loopback::kV6 : Loopback::kV4;
    }
  }
  return Fail(ErrorCode::kNotFound,
              "worker " + std::to_string(key.worker) + " of job " + std::to_string(key.job) +
                  " does not listen on port " + std::to_string(port),
              "start the server inside the job first; it must listen on 127.0.0.1 or on all "
              "addresses");
}

std::string LocalPool::LogPath(model::JobNumber job, std::uint32_t worker, bool err) {
  return folders_.Logs(job) + "/" + std::to_string(worker) + (err ? ".err" : ".out");
}

}  // namespace muster::pools
