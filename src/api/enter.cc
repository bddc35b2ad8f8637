#include "api/enter.h"

#include <fmt/format.h>

#include "api/jobs.h"
#include "model/problems.h"

namespace muster::api {
namespace {

struct Place {
  pools::Pool* pool = nullptr;
  pools::LaunchKey key;
};

Result<Place> PlaceOf(Controller& control, const Access& access, const Call& call) {
  auto job = RecordOf(control, access, LivingOne(control, access, call.Path("job")));
  if (!job) return tl::unexpected(job.error());
  if (auto may = access.MayEnter(*job); !may) return tl::unexpected(may.error());
  const auto w = static_cast<std::uint32_t>(call.Number("worker", 0));
  if (auto has = HasWorker(*job, w); !has) return tl::unexpected(has.error());
  if (w >= job->workers.size() || job->workers[w].phase != state::WorkerPhase::kRunning) {
    const auto phase = state::PhaseOf(*job);
    auto what = fmt::format("worker {} of job {} does not run", w, job->id);
    if (state::Ended(phase)) {
      return Fail(ErrorCode::kConflict, what + "; the job has ended",
                  fmt::format("`muster describe {}` shows how", job->id));
    }
    if (phase == state::Phase::kRunning) {
      return Fail(ErrorCode::kConflict, std::move(what),
                  fmt::format("`muster describe {}` shows which do", job->id));
    }
    return Fail(ErrorCode::kConflict, fmt::format("{}; the job is {}", what, state::Name(phase)),
                fmt::format("`muster wait {} --for running`, then again", job->id));
  }
  const auto& worker = job->workers[w];
  auto* pool = control.PoolOf(worker.node);
  if (pool == nullptr) {
    return Fail(ErrorCode::kConflict, "node " + worker.node + " is in no pool that is there now",
                "`muster pools` shows those that are");
  }
  return Place{pool, {job->id, w, worker.launch}};
}

pools::Screen ScreenOf(const Call& call) {
  return {static_cast<int>(call.Number("rows", 24)), static_cast<int>(call.Number("cols", 80))};
}

void Join(Desk& desk, const Call& call,
          std::function<Result<net::RelayTarget>(const Place&)> target) {
  const Error no_socket{ErrorCode::kUsage, "this call is a WebSocket",
                        "ask for an upgrade of the connection", "Upgrade"};
  struct Way {
    net::RelayTarget to;
    model::JobNumber job = 0;
  };
  auto way = std::make_shared<Way>();
  desk.Enter(
      call,
      [call, way, no_socket, target = std::move(target)](Controller& control,
                                                         const Access& access) -> Result<Trace> {
        auto place = PlaceOf(control, access, call);
        if (!place) return tl::unexpected(place.error());
        auto found = target(*place);
        if (!found) return tl::unexpected(found.error());
        // Nothing that cannot be entered is in the trail as entered.
        if (call.request->Find("Upgrade") == nullptr) return tl::unexpected(no_socket);
        *way = {std::move(*found), place->key.job};
        const auto& job = *control.state().Find(place->key.job);
        DocNode what = model::MapNode();
        Put(what, "worker", model::NumberNode(place->key.worker));
        for (const char* key : {"command", "port"}) {
          if (const auto text = call.Text(key); !text.empty())
            Put(what, key, model::TextNode(text));
        }
        return Trace{"job " + std::to_string(job.id), job.spec->queue, "", model::WriteJson(what)};
      },
      [&desk, call, way, no_socket] {
        desk.server()->Post([&desk, call, way, no_socket] {
          const auto socket = desk.server()->Relay(*call.exchange, std::move(way->to));
          if (socket.expired()) return ReplyError(*call.exchange, no_socket);
          desk.service().Read([&desk, call, socket, id = way->job](Controller&) {
            desk.Keep(call, socket, [id](Controller& control, const Access& access) {
              const auto job = RecordOf(control, access, std::to_string(id));
              return job && access.MayEnter(*job);
            });
          });
        });
      });
}

Result<std::vector<std::string>> CommandOf(const Call& call) {
  model::Problems problems;
  const auto documents = model::ParseDocuments(call.Text("command"), problems);
  std::vector<std::string> words;
  if (!problems.HasErrors() && documents.size() == 1 &&
      documents[0].kind == model::DocKind::kSequence) {
    for (const auto& word : documents[0].children) words.push_back(word.text);
  }
  if (!words.empty() && !words[0].empty()) return words;
  Error error{ErrorCode::kUsage, "parameter \"command\" is no list of words", "[\"nvidia-smi\"]"};
  error.path = "command";
  return tl::unexpected(std::move(error));
}

}  // namespace

void AttachJob(Desk& desk, const Call& call) {
  Join(desk, call, [screen = ScreenOf(call)](const Place& place) -> Result<net::RelayTarget> {
    auto door = place.pool->Attach(place.key, screen);
    if (!door) return tl::unexpected(door.error());
    return net::RelayTarget{.unix_path = door->socket, .first_bytes = door->request};
  });
}

void ExecJob(Desk& desk, const Call& call) {
  auto command = CommandOf(call);
  if (!command) return ReplyError(*call.exchange, command.error());
  Join(desk, call,
       [command = std::move(*command), terminal = call.Flag("terminal"),
        screen = ScreenOf(call)](const Place& place) -> Result<net::RelayTarget> {
         auto door = place.pool->Exec(place.key, command, terminal, screen);
         if (!door) return tl::unexpected(door.error());
         return net::RelayTarget{.unix_path = door->socket, .first_bytes = door->request};
       });
}

void ForwardPort(Desk& desk, const Call& call) {
  const auto port = static_cast<std::uint16_t>(call.Number("port", 0));
  Join(desk, call, [port](const Place& place) -> Result<net::RelayTarget> {
    const auto by = place.pool->ListensOn(place.key, port);
    if (!by) return tl::unexpected(by.error());
    return net::RelayTarget{.loopback_port = port,
                            .loopback_v6 = *by == pools::Pool::Loopback::kV6};
  });
}

}  // namespace muster::api
