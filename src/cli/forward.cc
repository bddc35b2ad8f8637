// A port of a worker, on this machine.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cli/enter.h"
#include "client/tunnel.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr int kLookEveryMs = 1'000;
constexpr int kNotebookPort = 8888;  // here, where it is free: what browsers have in their history
constexpr std::chrono::milliseconds kLookAgain(200);

struct Ports {
  std::uint16_t local = 0;  // 0: any
  std::uint16_t remote = 0;
};

// "8888" or "9000:8888".
Result<Ports> ParsePorts(const std::string& text) {
  const auto colon = text.find(':');
  const auto number = [](const std::string& word) {
    const bool digits = !word.empty() && word.size() <= 5 &&
                        word.find_first_not_of("0123456789") == std::string::npos;
    const int value = digits ? std::stoi(word) : -1;
    return value <= 65535 ? value : -1;
  };
  const int local = number(text.substr(0, colon));
  const int remote = colon == std::string::npos ? local : number(text.substr(colon + 1));
  if (local < 0 || remote < 1) {
    return Fail(ErrorCode::kUsage, "\"" + text + "\" is no port", "write 8888, or 9000:8888");
  }
  return Ports{static_cast<std::uint16_t>(local), static_cast<std::uint16_t>(remote)};
}

Result<int> ListenHere(Ports& ports) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(ports.local);
  auto* const to = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(listener, to, size) != 0 || ::listen(listener, 16) != 0 ||
      ::getsockname(listener, to, &size) != 0) {
    const std::string why = std::strerror(errno);
    ::close(listener);
    return Fail(ErrorCode::kConflict,
                "cannot listen on 127.0.0.1:" + std::to_string(ports.local) + ": " + why,
                "choose another port here: 9000:" + std::to_string(ports.remote));
  }
  ports.local = ntohs(address.sin_port);
  return listener;
}

struct Notebook {
  std::uint16_t port = 0;
  std::string token;
};

struct Standing {
  std::string id;
  std::string phase, user;
  bool task = false;  // of an array
  std::int64_t workers = 0;
  bool ended = false;
  std::string end;    // why
  bool runs = false;  // the worker
  std::optional<Notebook> notebook;
};

Result<Standing> Look(client::Client& client, const std::string& job, std::int64_t worker) {
  const auto answer = client.Get("jobs/" + job);
  if (!answer) return tl::unexpected(answer.error());
  const auto got = Json::parse(*answer);
  const auto& status = got.at("status");
  Standing now;
  now.id = got.value("id", "");
  now.phase = status.value("phase", "");
  now.user = got.value("user", "");
  now.task = got.contains("array");
  if (status.contains("tasks")) {
    return Fail(ErrorCode::kConflict, "job " + now.id + " is an array",
                "name one of its tasks, as " + got.value("name", "") + "[0]");
  }
  now.ended = status.contains("termination");
  if (now.ended) now.end = status.at("termination").value("reason", "");
  const auto workers = status.value("workers", Json::array());
  now.workers = std::max(static_cast<std::int64_t>(workers.size()),
                         status.value("workers_max", std::int64_t{0}));
  if (worker < static_cast<std::int64_t>(workers.size())) {
    const auto& one = workers.at(static_cast<std::size_t>(worker));
    now.runs = one.value("phase", "") == "running";
    if (one.contains("notebook")) {
      const auto& notebook = one.at("notebook");
      now.notebook =
          Notebook{notebook.at("port").get<std::uint16_t>(), notebook.value("token", "")};
    }
  }
  return now;
}

// A name is that of the latest job that has it; where that one has ended and a single other one of
// the same user lives, it is meant, as exec does it. Empty: there is none.
std::string LivingNamed(client::Client& client, const std::string& word, const Standing& latest) {
  if (!latest.ended || word == latest.id || word.starts_with('@') || latest.task) return "";
  const auto answer = client.Get(
      "jobs",
      {{"filter", "name=" + word}, {"user", latest.user}, {"fields", "id"}, {"limit", "2"}});
  if (!answer) return "";
  const auto jobs = Json::parse(*answer).value("jobs", Json::array());
  return jobs.size() == 1 ? jobs.at(0).value("id", "") : "";
}

Error NotRunning(const Standing& now, std::int64_t worker) {
  if (now.ended) {
    return {ErrorCode::kConflict, "job " + now.id + " has ended: " + now.end, ""};
  }
  if (worker >= now.workers) {
    return {ErrorCode::kNotFound, fmt::format("job {} has no worker {}", now.id, worker),
            fmt::format("it has {}, numbered from 0", now.workers)};
  }
  return {ErrorCode::kConflict,
          fmt::format("worker {} of job {} does not run; the job is {}", worker, now.id, now.phase),
          "`muster wait " + now.id + " --for running`, then again"};
}

class Forward {
 public:
  Forward(Session& session, std::string job, std::int64_t worker)
      : session_(session), job_(std::move(job)), worker_(worker) {}

  int Run(const std::string& text) {
    // Whether the job can be had is said now, not with the first connection.
    auto now = Look(session_.client(), job_, worker_);
    if (!now) return Refuse(now.error());
    if (const auto other = LivingNamed(session_.client(), job_, *now); !other.empty()) {
      now = Look(session_.client(), other, worker_);
      if (!now) return Refuse(now.error());
    }
    if (!now->runs) return Refuse(NotRunning(*now, worker_));
    job_ = now->id;  // a name may come to mean another job
    auto ports = text.empty() ? OfNotebook(*now) : ParsePorts(text);
    if (!ports) return Refuse(ports.error());
    path_ = "jobs/" + job_ + "/forward";
    query_ = {{"worker", std::to_string(worker_)}, {"port", std::to_string(ports->remote)}};
    auto listener = ListenHere(*ports);
    if (!listener && text.empty()) {
      ports->local = 0;
      listener = ListenHere(*ports);
    }
    if (!listener) return Refuse(listener.error());
    if (auto ready = AwaitListener(*now, text.empty()); !ready) return Refuse(ready.error());
    SayWhere(*ports,
             now->notebook && now->notebook->port == ports->remote ? &*now->notebook : nullptr);
    std::signal(SIGPIPE, SIG_IGN);
    return Serve(*listener);
  }

 private:
  static Result<Ports> OfNotebook(const Standing& now) {
    if (now.notebook) return Ports{kNotebookPort, now.notebook->port};
    return Fail(ErrorCode::kUsage, "job " + now.id + " has no notebook whose port would be known",
                "name a port: `muster port-forward " + now.id + " 8888`");
  }

  // One connection that carries nothing tells whether anything listens, and whether we may.
  Result<void> Probe() {
    client::Client own(session_.target());
    return client::Knock(own, path_, query_);
  }

  Result<void> AwaitListener(const Standing& begun, bool notebook) {
    bool said = false;
    for (;;) {
      auto probed = Probe();
      if (probed || probed.error().code != ErrorCode::kNotFound) return probed;
      if (!notebook) {
        std::cerr << "muster: " << probed.error().message
                  << " yet; connections are closed until it does\n";
        return {};
      }
      if (!said) std::cerr << "the notebook of job " << begun.id << " is starting\n";
      said = true;
      const auto now = Look(session_.client(), job_, worker_);
      if (!now) return tl::unexpected(now.error());
      if (!now->runs) return tl::unexpected(NotRunning(*now, worker_));
      std::this_thread::sleep_for(kLookAgain);
    }
  }

  void SayWhere(const Ports& ports, const Notebook* notebook) const {
    std::cerr << "127.0.0.1:" << ports.local << " leads to port " << ports.remote << " of job "
              << job_ << "; Ctrl-C ends it\n";
    if (notebook == nullptr) return;
    // Data: a script may open it.
    std::cout << "http://127.0.0.1:" << ports.local << "/?token=" << notebook->token << std::endl;
  }

  int Serve(int listener) {
    for (;;) {
      pollfd ready{listener, POLLIN, 0};
      ::poll(&ready, 1, kLookEveryMs);
      if (const int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC); socket >= 0) {
        Join(socket);
        if (WallMs() - looked_ms_ < kLookEveryMs) continue;
      }
      looked_ms_ = WallMs();
      const auto now = Look(session_.client(), job_, worker_);
      if (now && now->ended) {
        std::cerr << "job " << job_ << " has ended: " << now->end << '\n';
        return 0;
      }
      if (!now && now.error().code != ErrorCode::kUnavailable &&
          now.error().code != ErrorCode::kTimeout) {
        return Refuse(now.error());
      }
      Notice(!now        ? "the daemon does not answer; trying again"
             : now->runs ? "it can be reached again"
                         : "the job is " + now->phase + "; its port comes back with it",
             now && now->runs);
    }
  }

  // Each change is said once.
  void Notice(const std::string& what, bool good) {
    if (good == reachable_ && (good || what == noticed_)) return;
    reachable_ = good;
    noticed_ = what;
    std::cerr << "muster: " << what << '\n';
  }

  void Join(int socket) {
    std::thread([target = session_.target(), path = path_, query = query_, socket] {
      client::Client own(target);
      const auto carried = client::Carry(own, path, query, socket);
      if (!carried) Refuse(carried.error());
    }).detach();
  }

  Session& session_;
  std::string job_;
  std::int64_t worker_;
  std::string path_;
  client::Client::Query query_;
  std::int64_t looked_ms_ = 0;
  bool reachable_ = true;
  std::string noticed_;
};

}  // namespace

int PortForward(Session& session, const std::string& job, std::int64_t worker,
                const std::string& ports) {
  return Forward(session, job, worker).Run(ports);
}

}  // namespace muster::cli
