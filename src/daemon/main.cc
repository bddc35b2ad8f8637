// `musterd`: wires clock, store, pools, controller and API together, and nothing else.
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/api.h"
#include "base/clock.h"
#include "base/files.h"
#include "control/controller.h"
#include "control/runs.h"
#include "control/service.h"
#include "daemon/backup.h"
#include "daemon/notify.h"
#include "model/fields.h"
#include "model/spec_codec.h"
#include "model/vocabulary.h"
#include "net/http_server.h"
#include "pools/local/local_pool.h"
#include "pools/simulated/simulated_pool.h"
#include "state/mark.h"
#include "state/postgres_store.h"
#include "state/sqlite_store.h"
#include "state/state.h"

namespace {

using muster::Error;
using muster::ErrorCode;
using muster::Result;

struct Options {
  std::string state;
  std::string store;
  std::string socket;
  std::string config;
  std::string run;
  std::string listen;
  std::string tls_certificate;
  std::string tls_key;
  std::vector<std::string> host_names;
  std::string traces;
  std::string backup;
  std::int64_t virtual_gpus = 0;
  double idle_cpu = 0.02;
  int idle_gpu = 1;
  std::int64_t ready_fd = -1;
};

std::string Home() {
  const passwd* account = ::getpwuid(::geteuid());
  return account == nullptr ? "/" : account->pw_dir;
}

void FillDefaults(Options& options) {
  const bool root = ::geteuid() == 0;
  if (options.state.empty()) options.state = root ? "/var/lib/muster" : Home() + "/.muster";
  if (options.socket.empty()) {
    options.socket = root ? "/run/muster/musterd.sock" : Home() + "/.muster/musterd.sock";
  }
  options.state = std::filesystem::absolute(options.state).lexically_normal().string();
}

void Say(const std::string& text) { std::cerr << "musterd: " << text << std::endl; }

int Refuse(const Error& error) {
  Say(Describe(error));
  return muster::ExitStatus(error.code);
}

Result<muster::model::SpecFile> ReadConfig(const Options& options) {
  muster::model::SpecFile spec;
  if (!options.config.empty()) {
    auto text = muster::ReadFile(options.config);
    if (!text) return tl::unexpected(text.error());
    auto decoded = muster::model::DecodeSpec(*text);
    if (decoded.problems.HasErrors()) {
      Error error = muster::model::ToError(decoded.problems);
      error.message = options.config + ": " + error.message;
      return tl::unexpected(std::move(error));
    }
    spec = std::move(decoded.spec);
  }
  if (spec.cluster.pools.empty()) {
    muster::model::Pool here;
    here.name = "local";
    here.driver = muster::model::PoolDriver::kLocal;
    spec.cluster.pools.push_back(here);
  }
  if (options.virtual_gpus > 0) {
    for (auto& pool : spec.cluster.pools) {
      if (pool.driver == muster::model::PoolDriver::kLocal) {
        pool.virtual_gpus.count = options.virtual_gpus;
      }
    }
  }
  return spec;
}

// Podman's own settings, where the admin keeps those for Muster apart.
std::map<std::string, std::string> ContainerSettings() {
  std::map<std::string, std::string> settings;
  for (const char* name :
       {"CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF"}) {
    if (const char* value = std::getenv(name)) settings[name] = value;
  }
  return settings;
}

struct Pools {
  std::vector<std::unique_ptr<muster::pools::Pool>> all;
  std::vector<int> doorbells;
  std::vector<const muster::pools::LocalPool*> local;
};

Result<Pools> OpenPools(const muster::model::ClusterFile& cluster, const Options& options,
                        muster::Clock& clock) {
  Pools pools;
  for (const auto& pool : cluster.pools) {
    switch (pool.driver) {
      case muster::model::PoolDriver::kLocal: {
        muster::pools::LocalPool::Options local;
        local.name = pool.name;
        local.state_dir = options.state;
        local.run_dir = options.run;
        local.virtual_gpus = pool.virtual_gpus;
        local.container_env = ContainerSettings();
        local.idle.cpu_milli = static_cast<std::int64_t>(options.idle_cpu * 1000);
        local.idle.gpu_percent = options.idle_gpu;
        local.shim = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "muster-shim";
        auto opened = muster::pools::LocalPool::Open(std::move(local), clock);
        if (!opened) return tl::unexpected(opened.error());
        pools.doorbells.push_back((*opened)->doorbell());
        pools.local.push_back(opened->get());
        pools.all.push_back(std::move(*opened));
        break;
      }
      case muster::model::PoolDriver::kSimulated:
        pools.all.push_back(std::make_unique<muster::pools::SimulatedPool>(pool, clock));
        break;
      case muster::model::PoolDriver::kKubernetes:
      case muster::model::PoolDriver::kSlurm:
        return muster::Fail(ErrorCode::kInvalid,
                            "pool " + pool.name + ": driver " +
                                std::string(muster::model::NameOf(pool.driver)) +
                                " is not available yet",
                            "local and simulated are");
    }
  }
  return pools;
}

void SayNotes(const Pools& pools) {
  for (const auto* pool : pools.local) {
    for (const auto& note : pool->notes()) Say(note);
  }
}

Result<std::unique_ptr<muster::state::Store>> OpenStore(const Options& options) {
  std::error_code error;
  std::filesystem::create_directories(options.state, error);
  if (error) {
    return muster::Fail(ErrorCode::kDenied,
                        "cannot create " + options.state + ": " + error.message(),
                        "give a folder that you may write to with --state");
  }
  std::filesystem::permissions(options.state, static_cast<std::filesystem::perms>(0711), error);
  if (options.store.empty()) return muster::state::OpenSqlite(options.state + "/journal.db");
  for (const char* scheme : {"postgresql://", "postgres://"}) {
    if (options.store.starts_with(scheme)) return muster::state::OpenPostgres(options.store);
  }
  return muster::Fail(ErrorCode::kUsage, "--store is no URL of a store that there is",
                      "postgresql://user@host/database, or nothing for SQLite in --state");
}

// None: it is said why, and jobs run without.
std::unique_ptr<muster::control::Runs> OpenRuns(const Options& options) {
  auto store = muster::state::RunStore::Open(options.state + "/runs.db");
  if (store) return std::make_unique<muster::control::Runs>(std::move(*store));
  Say(Describe(store.error()));
  return nullptr;
}

std::string MarkPath(const Options& options) { return options.state + "/journal.mark"; }

// What was lost stays lost, but its numbers are not given out again.
Result<void> SkipLostNumbers(muster::state::Store& store, const Options& options) {
  muster::state::MarkFile file(MarkPath(options));
  const auto mark = file.Read();
  auto state = muster::state::LoadState(store);
  if (!state) return tl::unexpected(state.error());
  if (mark && mark->next_job > state->next_job()) {
    const muster::model::Event event{state->last_ms(),
                                     muster::model::NumbersSkipped{mark->next_job}};
    const muster::state::Record record{state->revision() + 1, event.at_ms, 0,
                                       muster::model::EncodeEvent(event.body)};
    if (auto written = store.Append({&record, 1}, {}, {}); !written) return written;
    state->Fold(event);
  }
  file.Write({state->revision(), state->next_job()});
  return {};
}

int Repair(const Options& options) {
  const std::string file = options.state + "/journal.db";
  Result<std::int64_t> moved = 0;
  // A file that SQLite refuses as a whole cannot be opened before it is repaired.
  if (options.store.empty()) moved = muster::state::RepairSqlite(file);
  if (!moved) return Refuse(moved.error());
  auto store = OpenStore(options);
  if (!store) return Refuse(store.error());
  if (!options.store.empty()) moved = (*store)->Repair();
  if (!moved) return Refuse(moved.error());
  if (auto skipped = SkipLostNumbers(**store, options); !skipped) return Refuse(skipped.error());
  Say("kept the intact part of " + (*store)->Describe() + "; " + std::to_string(*moved) +
      " records were put aside in its table set_aside");
  if (options.store.empty() && std::filesystem::exists(file + ".damaged")) {
    Say("a file whose pages were damaged is kept beside it as " + file + ".damaged");
  }
  return 0;
}

int Backup(const Options& options) {
  if (!options.store.empty()) {
    return Refuse({ErrorCode::kUsage, "backup is for the SQLite journal in --state",
                   "back up PostgreSQL with pg_dump"});
  }
  const auto size = muster::daemon::BackupSqlite(options.state + "/journal.db", options.backup);
  if (!size) return Refuse(size.error());
  Say("wrote " + options.backup + ", " + std::to_string(*size) + " bytes");
  return 0;
}

// "ADDRESS:PORT", "[::1]:PORT" or a port of this machine alone.
Result<void> ReadListen(const Options& options, muster::net::ServerOptions& listen) {
  listen.host_names = options.host_names;
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return muster::Fail(ErrorCode::kUsage, "--tls-cert and --tls-key go together");
  }
  if (!options.tls_certificate.empty()) {
    listen.tls = muster::net::TlsFiles{options.tls_certificate, options.tls_key};
  }
  if (options.listen.empty()) return {};
  const auto colon = options.listen.rfind(':');
  muster::net::TcpAddress address;
  if (colon != std::string::npos) address.address = options.listen.substr(0, colon);
  if (address.address.starts_with('[') && address.address.ends_with(']')) {
    address.address = address.address.substr(1, address.address.size() - 2);
  }
  const auto port = options.listen.substr(colon == std::string::npos ? 0 : colon + 1);
  const auto number = muster::model::ParseWhole(port);
  if (!number || *number < 0 || *number > 65535) {
    return muster::Fail(ErrorCode::kUsage, "--listen: \"" + options.listen + "\" is no address",
                        "write it like 0.0.0.0:7400 or 127.0.0.1:7400");
  }
  address.port = static_cast<std::uint16_t>(*number);
  listen.tcp = address;
  return {};
}

// A signal; 0 when none came within `wait_ms`, which is for ever when it is 0.
int NextSignal(const sigset_t& wanted, std::int64_t wait_ms) {
  int number = 0;
  if (wait_ms == 0) return ::sigwait(&wanted, &number) == 0 ? number : 0;
  const timespec wait{wait_ms / 1000, wait_ms % 1000 * 1'000'000};
  number = ::sigtimedwait(&wanted, nullptr, &wait);
  return number > 0 ? number : 0;
}

// Until it is told to end; a hang-up means that the certificate is to be read again. The sign of
// life comes from the thread that owns the state: when that hangs, so does everything.
void WaitForEnd(const sigset_t& wanted, muster::net::HttpServer& server, bool tls,
                muster::control::Service& service, const muster::daemon::ServiceManager& manager) {
  const auto every_ms = muster::daemon::WatchdogMs(std::getenv("WATCHDOG_USEC"),
                                                   std::getenv("WATCHDOG_PID"), ::getpid()) /
                        2;
  while (true) {
    const int number = NextSignal(wanted, every_ms);
    if (number == SIGTERM || number == SIGINT) return;
    if (number == SIGHUP) {
      manager.Tell("RELOADING=1");
      if (tls) {
        const auto reloaded = server.ReloadTls();
        Say(reloaded ? "the certificate was read again" : Describe(reloaded.error()));
      }
      manager.Tell("READY=1");
    } else if (every_ms > 0) {
      service.Read([&manager](auto&) { manager.Tell("WATCHDOG=1"); });
    }
  }
}

muster::control::Host HostOf(const Options& options, const Pools& pools) {
  muster::control::Host host{options.state, "", options.tls_certificate};
  if (!pools.local.empty()) {
    host.run = options.run.empty() ? muster::pools::RunFolder(options.state) : options.run;
  }
  return host;
}

// Those that WaitForEnd() waits for; blocked before there is a second thread.
sigset_t TakeSignals() {
  ::signal(SIGCHLD, SIG_IGN);  // shims are not waited for: their records tell
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&wanted, number);
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  return wanted;
}

// What the server asks before it is anybody's request.
void LetApiSay(muster::api::Api& api, muster::net::ServerOptions& listen) {
  listen.refusal = muster::api::Api::Refusal;
  listen.on_refused = [&api](int status) { api.Refused(status); };
  listen.body_limit = [&api](const auto& head) { return api.BodyLimit(head); };
}

int Serve(const Options& options) {
  const sigset_t wanted = TakeSignals();
  const char* told = std::getenv("NOTIFY_SOCKET");
  const muster::daemon::ServiceManager manager(told == nullptr ? "" : told);
  auto config = ReadConfig(options);
  if (!config) return Refuse(config.error());
  auto store = OpenStore(options);
  if (!store) return Refuse(store.error());
  muster::SystemClock clock;
  auto pools = OpenPools(config->cluster, options, clock);
  if (!pools) return Refuse(pools.error());
  muster::state::MarkFile mark(MarkPath(options));
  std::atomic<muster::api::Api*> watching = nullptr;
  muster::control::Controller::Ports ports{clock, **store, {}, &mark};
  ports.written = [&watching](const auto& control, auto records) {
    if (auto* api = watching.load()) api->Written(control, records);
  };
  for (const auto& pool : pools->all) ports.pools.push_back(pool.get());
  const auto runs = OpenRuns(options);
  ports.runs = runs.get();
  muster::control::Settings settings;
  settings.version = MUSTER_VERSION;
  settings.host = HostOf(options, *pools);
  settings.engine.topologies = config->cluster.topologies;
  muster::control::Controller controller(std::move(ports), settings);
  if (auto recovered = controller.Recover(); !recovered) return Refuse(recovered.error());
  SayNotes(*pools);
  if (!config->queues.empty() && controller.state().queues().size() <= 1) {
    if (auto applied = controller.ApplyQueues(config->queues, "musterd"); !applied) {
      return Refuse(applied.error());
    }
  }
  muster::control::Service service(controller, clock, pools->doorbells, Say);
  auto made = muster::api::Api::Make(service, clock, {MUSTER_VERSION, options.traces});
  if (!made) return Refuse(made.error());
  auto& api = **made;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(options.socket).parent_path(), error);
  muster::net::ServerOptions listen;
  listen.unix_path = options.socket;
  // Who is not root runs every worker as itself, so nobody else may ask for one.
  listen.unix_mode = ::geteuid() == 0 ? 0666 : 0600;
  if (auto reads = ReadListen(options, listen); !reads) return Refuse(reads.error());
  LetApiSay(api, listen);
  // Requests that come before the API knows its server wait for it.
  auto server = muster::net::HttpServer::Start(listen, [&api](auto request, auto exchange) {
    api.Handle(std::move(request), std::move(exchange));
  });
  if (!server) return Refuse(server.error());
  watching = &api;
  api.Attach(**server);
  Say("ready: state in " + options.state + ", journal in " + (*store)->Describe() +
      ", listening on " + options.socket +
      (listen.tcp ? " and " + listen.tcp->address + ":" + std::to_string((*server)->tcp_port())
                  : ""));
  if (options.ready_fd >= 0) {
    const int ready = static_cast<int>(options.ready_fd);
    if (::write(ready, "\n", 1) != 1) Say("whoever waits for the start has gone");
    ::close(ready);
  }
  manager.Tell("READY=1");
  WaitForEnd(wanted, **server, listen.tls.has_value(), service, manager);
  manager.Tell("STOPPING=1");
  Say("stopping; jobs that run go on");
  (*server)->Retire();
  service.Stop();  // its work may still use the server
  api.Close();
  server->reset();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"musterd: the daemon of Muster; one shared pool of GPUs"};
  app.set_version_flag("--version", "musterd " MUSTER_VERSION);
  Options options;
  app.add_option("--state", options.state, "folder of the journal, logs and running workers");
  app.add_option("--store", options.store,
                 "keep the journal in PostgreSQL: postgresql://user@host/database (a password is "
                 "best kept in ~/.pgpass)");
  app.add_option("--socket", options.socket, "Unix socket to listen on");
  app.add_option("--listen", options.listen,
                 "also listen on ADDRESS:PORT; beyond this machine with TLS only");
  app.add_option("--tls-cert", options.tls_certificate,
                 "certificate chain, PEM; read again on HUP");
  app.add_option("--tls-key", options.tls_key, "its key, PEM");
  app.add_option("--host-name", options.host_names,
                 "a name that clients know this machine by; others are refused where one is given");
  app.add_option("--run", options.run,
                 "folder for locks and sockets of running workers, in memory");
  app.add_option("--config", options.config, "cluster file with pools, topology and queues");
  app.add_option("--traces", options.traces,
                 "folder of public traces that simulations may name files of")
      ->check(CLI::ExistingDirectory);
  app.add_option("--virtual-gpus", options.virtual_gpus, "pretend that this machine has N GPUs")
      ->check(CLI::Range(1, 64));
  app.add_option("--idle-cpu", options.idle_cpu,
                 "cores that a job must use not to be idle; default 0.02")
      ->check(CLI::Range(0.0, 1024.0));
  app.add_option("--idle-gpu", options.idle_gpu,
                 "percent of a GPU that a job must use not to be idle; default 1")
      ->check(CLI::Range(1, 100));
  app.add_option("--ready-fd", options.ready_fd, "written to once requests are served")->group("");
  CLI::App* repair = app.add_subcommand("repair", "Keep the intact part of a damaged journal");
  CLI::App* backup = app.add_subcommand(
      "backup", "Copy the journal in --state to FILE, also while a daemon writes it");
  backup->add_option("FILE", options.backup, "a file that does not exist yet")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  FillDefaults(options);
  if (repair->parsed()) return Repair(options);
  return backup->parsed() ? Backup(options) : Serve(options);
}
