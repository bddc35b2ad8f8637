#include "cli/demo_json.h"

#include <nlohmann/json.hpp>

namespace muster::cli {

using nlohmann::json;

namespace {

const char* Name(sim::Turn turn) {
  switch (turn) {
    case sim::Turn::kArrive:
      return "arrive";
    case sim::Turn::kStart:
      return "start";
    case sim::Turn::kGrow:
      return "grow";
    case sim::Turn::kShrink:
      return "shrink";
    case sim::Turn::kPause:
      return "pause";
    case sim::Turn::kResume:
      return "resume";
    case sim::Turn::kEnd:
      return "end";
  }
  return "";
}

json ScriptJson(const sim::Script& script) {
  json researchers = json::array(), jobs = json::array();
  for (const auto& researcher : script.researchers) {
    researchers.push_back({{"name", researcher.name},
                           {"quota", researcher.quota},
                           {"fixed_quota", researcher.fixed_quota}});
  }
  for (const auto& job : script.jobs) {
    jobs.push_back({{"name", job.name},
                    {"queue", script.researchers[job.owner].name},
                    {"arrives_ms", job.arrives_ms},
                    {"min_workers", job.min_workers},
                    {"max_workers", job.max_workers},
                    {"work_gpu_ms", job.work_gpu_ms},
                    {"priority", job.priority},
                    {"interactive", job.interactive}});
  }
  return {{"gpus", script.gpus},
          {"day_ms", script.day_ms},
          {"checkpoint_every_ms", script.checkpoint_every_ms},
          {"shrink_ms", script.shrink_ms},
          {"pause_ms", script.pause_ms},
          {"restart_ms", script.restart_ms},
          {"researchers", researchers},
          {"jobs", jobs}};
}

json HappeningJson(const sim::Script& script, const sim::Happening& what) {
  json out = {{"at_ms", what.at_ms},
              {"what", Name(what.turn)},
              {"job", script.jobs[what.job].name},
              {"workers_before", what.from},
              {"workers_after", what.to}};
  if (what.turn == sim::Turn::kArrive || what.turn == sim::Turn::kEnd) return out;
  out["rule"] = model::Name(what.rule);
  out["held_by_queue"] = what.held;
  out["fair_share_milli"] = what.share_milli;
  for (const auto cause : what.causes) out["for"].push_back(script.jobs[cause].name);
  if (what.turn == sim::Turn::kPause) out["lost_gpu_ms"] = what.lost_gpu_ms;
  if (what.turn == sim::Turn::kStart || what.turn == sim::Turn::kResume) {
    out["waited_ms"] = what.waited_ms;
  }
  return out;
}

json RunJson(const sim::Script& script, const sim::StoryRun& run) {
  json story = json::array(), jobs = json::array(), stays = json::array();
  for (const auto& what : run.happenings) story.push_back(HappeningJson(script, what));
  for (std::size_t i = 0; i < run.records.size(); ++i) {
    const auto& record = run.records[i];
    jobs.push_back({{"name", script.jobs[i].name},
                    {"entitled", record.entitled},
                    {"started_ms", record.started_ms},
                    {"ended_ms", record.ended_ms},
                    {"waited_ms", record.waited_ms},
                    {"lost_gpu_ms", record.lost_gpu_ms},
                    {"pauses", record.pauses},
                    {"resizes", record.resizes}});
  }
  for (const auto& stay : run.stays) {
    stays.push_back({{"gpu", stay.gpu},
                     {"job", script.jobs[stay.job].name},
                     {"worker", stay.worker},
                     {"from_ms", stay.from_ms},
                     {"to_ms", stay.to_ms}});
  }
  const auto& measures = run.measures;
  const auto capacity = static_cast<double>(script.gpus * script.day_ms);
  return {{"sharing", run.sharing == sim::Sharing::kPool ? "pool" : "fixed"},
          {"story", story},
          {"jobs", jobs},
          {"stays", stays},
          {"measures",
           {{"utilisation", static_cast<double>(measures.held_gpu_ms) / capacity},
            {"held_gpu_ms", measures.held_gpu_ms},
            {"useful_gpu_ms", measures.useful_gpu_ms},
            {"idle_wanted_gpu_ms", measures.idle_wanted_gpu_ms},
            {"ended_in_day", measures.ended_in_day},
            {"all_done_ms", measures.all_done_ms},
            {"mean_completion_ms", measures.mean_completion_ms},
            {"mean_wait_ms", measures.mean_wait_ms},
            {"longest_entitled_wait_ms", measures.longest_entitled_ms},
            {"pauses", measures.pauses},
            {"lost_gpu_ms", measures.lost_gpu_ms}}}};
}

}  // namespace

std::string StoryJson(const sim::Script& script, const sim::StoryRun& pool,
                      const sim::StoryRun& fixed) {
  const json out = {{"script", ScriptJson(script)},
                    {"runs", {RunJson(script, pool), RunJson(script, fixed)}}};
  return out.dump();
}

}  // namespace muster::cli
