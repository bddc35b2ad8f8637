#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "pools/frameworks/recipes.h"

namespace muster::pools {
namespace {

struct TaskType {
  std::string_view role;
  std::string_view type;
};

constexpr std::array<TaskType, 7> kTaskTypes{{{"chief", "chief"},
                                              {"master", "chief"},
                                              {"worker", "worker"},
                                              {"ps", "ps"},
                                              {"server", "ps"},
                                              {"parameter-server", "ps"},
                                              {"evaluator", "evaluator"}}};

std::optional<std::string> TypeOf(std::string_view role) {
  for (const TaskType& known : kTaskTypes) {
    if (known.role == role) return std::string(known.type);
  }
  return std::nullopt;
}

}  // namespace

Result<void> SetUpTensorflow(const GangView& gang, int rank, WorkerSetup& setup) {
  nlohmann::json cluster = nlohmann::json::object();
  std::string task_type;
  std::size_t task_index = 0;
  for (const Member* each : ByRank(gang)) {
    const Member& member = *each;
    const std::optional<std::string> type = TypeOf(member.role);
    if (!type) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("role \"{}\" means nothing to tensorflow", member.role),
                  "call it chief, worker, ps or evaluator");
    }
    // Each task listens at a port of its own.
    if (member.local_rank >= kPortsPerJob) {
      return Fail(
          ErrorCode::kInvalid,
          fmt::format("more than {} tensorflow tasks on node {}", kPortsPerJob, member.node),
          "ask for fewer and larger workers");
    }
    nlohmann::json& tasks = cluster[*type];
    if ((*type == "chief" || *type == "evaluator") && !tasks.empty()) {
      return Fail(ErrorCode::kInvalid, fmt::format("tensorflow takes one {}, not more", *type),
                  "give that role `count: 1`");
    }
    if (member.rank == rank) {
      task_type = *type;
      task_index = tasks.size();
    }
    tasks.push_back(fmt::format("{}:{}", member.host, gang.port_base + member.local_rank));
  }
  // A parameter server serves until it is stopped.
  setup.follows = task_type == "ps";
  nlohmann::json config;
  config["cluster"] = std::move(cluster);
  config["task"]["type"] = task_type;
  config["task"]["index"] = task_index;
  setup.env["TF_CONFIG"] = config.dump();
  return {};
}

}  // namespace muster::pools
