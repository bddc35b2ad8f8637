#include "sim/replay.h"

#include <deque>

#include "model/pack_model.h"

namespace muster::sim {

using model::Event;

namespace {

constexpr std::string_view kMagic = "muster recording 1\n";

// A decision as the journal writes it; two plans are the same when these are.
std::string Decision(std::string_view what, JobNumber job, std::uint32_t worker,
                     const std::string& node, std::uint64_t devices, JobNumber cause) {
  return std::string(what) + " job " + std::to_string(job) + " worker " + std::to_string(worker) +
         " on " + node + " gpus " + std::to_string(devices) +
         (cause == 0 ? "" : " for job " + std::to_string(cause));
}

std::deque<std::string> Decisions(const EngineView& view, const model::Plan& plan,
                                  const state::State& state) {
  std::deque<std::string> out;
  for (const auto& action : plan.actions) {
    const JobNumber job = view.NumberOf(action.job);
    const bool starts =
        action.kind == model::ActionKind::kStart || action.kind == model::ActionKind::kGrow;
    const JobNumber cause = starts ? 0 : view.NumberOf(action.cause);
    const std::string node =
        starts ? view.NodeName(action.node) : state.Find(job)->workers[action.worker].node;
    out.push_back(Decision(Name(action.kind), job, action.worker, node, starts ? action.devices : 0,
                           cause == job ? 0 : cause));
  }
  return out;
}

std::string Recorded(const Event& event, const state::State& before) {
  if (const auto* placed = std::get_if<model::WorkerPlaced>(&event.body)) {
    if (placed->again) return "";
    return Decision(Name(placed->action), placed->job, placed->worker, placed->node,
                    placed->devices, 0);
  }
  if (const auto* leaving = std::get_if<model::WorkerLeaving>(&event.body)) {
    const char* what = leaving->why == model::StopWhy::kPaused   ? "pause"
                       : leaving->why == model::StopWhy::kShrunk ? "shrink"
                       : leaving->why == model::StopWhy::kMoved  ? "move"
                                                                 : nullptr;
    if (what == nullptr) return "";
    const auto& worker = before.Find(leaving->job)->workers[leaving->worker];
    return Decision(what, leaving->job, leaving->worker, worker.node, 0, leaving->cause);
  }
  return "";
}

}  // namespace

std::string EncodeRecording(const Recording& recording) {
  model::Packer out;
  out.Put(recording.state);
  out.Put(recording.built_ms);
  out.Put(recording.topologies);
  out.Put(recording.records.size());
  for (const auto& record : recording.records) {
    out.Put(record.at_ms);
    out.Put(record.body);
  }
  return std::string(kMagic) + out.out;
}

Result<Recording> DecodeRecording(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) {
    return Fail(ErrorCode::kInvalid, "this is not a recording of a journal",
                "`muster snapshot save FILE` makes one");
  }
  model::Unpacker in(bytes.substr(kMagic.size()));
  Recording recording;
  std::size_t count = 0;
  in.Get(recording.state);
  in.Get(recording.built_ms);
  in.Get(recording.topologies);
  in.Get(count);
  for (std::size_t i = 0; i < count && !in.bad(); ++i) {
    auto& record = recording.records.emplace_back();
    in.Get(record.at_ms);
    in.Get(record.body);
  }
  if (in.bad()) return Fail(ErrorCode::kInvalid, "the recording is cut off or damaged");
  return recording;
}

Result<ReplayReport> Replay(const Recording& recording) {
  auto decoded = state::State::Decode(recording.state);
  if (!decoded) return tl::unexpected(decoded.error());
  state::State state = std::move(*decoded);
  EngineView view({{}, recording.topologies});
  if (auto built = view.Build(state, recording.built_ms); !built)
    return tl::unexpected(built.error());
  ReplayReport report;
  std::deque<std::string> expected;
  for (const auto& record : recording.records) {
    auto body = model::DecodeEvent(record.body);
    if (!body) return tl::unexpected(body.error());
    const Event event{record.at_ms, std::move(*body)};
    const auto revision = state.revision() + 1;
    const auto* cycle = std::get_if<model::CycleRan>(&event.body);
    const auto differs = [&](const std::string& was, const std::string& now) {
      report.same = false;
      report.difference = "at revision " + std::to_string(revision) +
                          " the journal says: " + (was.empty() ? "nothing" : was) +
                          "; the engine says: " + (now.empty() ? "nothing" : now);
    };
    const auto decided = Recorded(event, state);
    if (!decided.empty()) {
      ++report.decisions;
      if (expected.empty() || decided != expected.front()) {
        differs(decided, expected.empty() ? "" : expected.front());
        return report;
      }
      expected.pop_front();
    }
    if (cycle != nullptr) {
      if (!expected.empty()) {
        differs("", expected.front());
        return report;
      }
      auto plan = view.Cycle(state, cycle->now_ms);
      if (!plan) return tl::unexpected(plan.error());
      expected = Decisions(view, *plan, state);
      ++report.cycles;
    }
    state.Fold(event);
    view.Apply(event, state);
    ++report.events;
  }
  return report;
}

}  // namespace muster::sim
