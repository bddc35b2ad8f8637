#include "model/job_roles.h"

#include <array>
#include <string>
#include <utility>

#include "base/units.h"
#include "model/job_codec.h"
#include "model/vocabulary.h"

namespace muster::model {
namespace {

constexpr std::string_view kCountRule =
    "a number of workers such as 4, or a minimum and a maximum such as 2..8, from 1 to 100000";

// What one worker asks for, before it is understood; the same keys may stand in two places.
struct RequestKeys {
  const DocNode* gpus = nullptr;
  const DocNode* gpu_memory = nullptr;
  const DocNode* gpu_devices = nullptr;
  const DocNode* cpus = nullptr;
  const DocNode* memory = nullptr;
};

struct KeySlot {
  std::string_view key;
  const DocNode* RequestKeys::*slot;
};

constexpr std::array<KeySlot, 5> kRequestKeys = {{{"gpus", &RequestKeys::gpus},
                                                  {"gpu_memory", &RequestKeys::gpu_memory},
                                                  {"gpu_devices", &RequestKeys::gpu_devices},
                                                  {"cpus", &RequestKeys::cpus},
                                                  {"memory", &RequestKeys::memory}}};

std::optional<CountRange> ReadCount(const DocNode& node, Problems& problems) {
  if (node.kind != DocKind::kScalar) {
    problems.Error(node.mark,
                   NameOf(node) + " must be a number of workers, not " + DescribeNode(node),
                   std::string(kCountRule));
    return std::nullopt;
  }
  const std::string_view text = node.text;
  const auto dots = text.find("..");
  const auto least = ParseWhole(text.substr(0, dots));
  const auto most = dots == text.npos ? least : ParseWhole(text.substr(dots + 2));
  std::string wrong;
  if (!least || !most) {
    wrong = " is not a number of workers";
  } else if (*least < 1) {
    wrong = " asks for no worker";
  } else if (*least > *most) {
    wrong = " has its minimum above its maximum";
  } else if (*most > kMostWorkers) {
    wrong = " is too large";
  } else {
    return CountRange{static_cast<int>(*least), static_cast<int>(*most), dots != text.npos};
  }
  problems.Error(node.mark, NameOf(node) + ": " + DescribeNode(node) + wrong,
                 std::string(kCountRule));
  return std::nullopt;
}

void ReadDevices(const DocNode* node, GpuRequest& gpu, Problems& problems) {
  gpu.devices = 1;
  if (node == nullptr) return;
  const auto devices = ReadInteger(*node, {1, kMostGpusPerWorker}, problems);
  if (devices) gpu.devices = static_cast<int>(*devices);
}

GpuRequest ReadGpus(const RequestKeys& keys, Problems& problems) {
  GpuRequest gpu;
  if (keys.gpus != nullptr && keys.gpu_memory != nullptr) {
    problems.Error(keys.gpu_memory->key_mark, "`gpus` and `gpu_memory` exclude each other",
                   "one of them: whole GPUs or a share, or an amount of GPU memory");
    ReadQuantity(*keys.gpus, Quantity::kGpus, problems);
    ReadQuantity(*keys.gpu_memory, Quantity::kBytes, problems);
    return gpu;
  }
  if (keys.gpu_memory != nullptr) {
    const auto bytes =
        ReadQuantity(*keys.gpu_memory, Quantity::kBytes, problems, Bounds{1, kMostMemoryPerWorker});
    gpu.kind = GpuKind::kMemory;
    gpu.memory_bytes = bytes.value_or(1);
    ReadDevices(keys.gpu_devices, gpu, problems);
    return gpu;
  }
  std::int64_t milli = 0;
  if (keys.gpus != nullptr) {
    milli =
        ReadQuantity(*keys.gpus, Quantity::kGpus, problems, Bounds{0, kMostGpusPerWorker * kMilli})
            .value_or(0);
  }
  if (milli > kMilli && milli % kMilli != 0) {
    problems.Error(
        keys.gpus->mark,
        "`gpus`: " + Quoted(keys.gpus->text) + " is more than one GPU and not a whole number",
        "a whole number, or a share below 1 (`gpu_devices` takes it from several GPUs)");
  } else if (milli > 0 && milli < kMilli) {
    gpu.kind = GpuKind::kShare;
    gpu.share_milli = milli;
    ReadDevices(keys.gpu_devices, gpu, problems);
    return gpu;
  }
  if (keys.gpu_devices != nullptr) {
    problems.Error(keys.gpu_devices->key_mark, "`gpu_devices` goes with a share of a GPU only",
                   "`gpus` below 1, or `gpu_memory`, of each of so many GPUs");
  }
  if (milli >= kMilli) {
    gpu.kind = GpuKind::kWhole;
    gpu.devices = static_cast<int>(milli / kMilli);
  }
  return gpu;
}

WorkerRequest ReadRequest(const RequestKeys& keys, Amounts other, Problems& problems) {
  WorkerRequest request;
  request.gpu = ReadGpus(keys, problems);
  if (keys.cpus != nullptr) {
    request.cpu_milli =
        ReadQuantity(*keys.cpus, Quantity::kCores, problems, Bounds{0, 100'000 * kMilli})
            .value_or(0);
  }
  if (keys.memory != nullptr) {
    request.memory_bytes =
        ReadQuantity(*keys.memory, Quantity::kBytes, problems, Bounds{0, kMostMemoryPerWorker})
            .value_or(0);
  }
  request.other = std::move(other);
  return request;
}

// The known keys go to `keys`, everything else is a countable thing.
Amounts ReadResourceMap(const DocNode& node, RequestKeys& keys, Problems& problems) {
  Amounts other;
  if (node.kind != DocKind::kMap) {
    problems.Error(node.mark, NameOf(node) + " must be a map, not " + DescribeNode(node),
                   "gpus, gpu_memory, gpu_devices, cpus, memory, and countable things by name");
    return other;
  }
  for (const auto& child : node.children) {
    bool taken = false;
    for (const auto& slot : kRequestKeys) {
      if (child.key != slot.key) continue;
      keys.*slot.slot = &child;
      taken = true;
    }
    if (taken) continue;
    const auto meant = MeantResource(child.key);
    if (!IsCountableName(child.key) || !meant.empty()) {
      problems.Error(child.key_mark,
                     "unknown resource " + Quoted(child.key) +
                         (meant.empty() ? "" : "; did you mean " + Quoted(meant) + "?"),
                     "gpus, gpu_memory, gpu_devices, cpus, memory, or the name of a countable "
                     "thing, which begins with a small letter");
    } else if (const auto count =
                   ReadQuantity(child, Quantity::kPieces, problems, Bounds{1, 1'000'000})) {
      other.emplace(child.key, *count);
    }
  }
  return other;
}

// A value that could not be read was reported already; it still counts as asked for.
void CheckRole(const RoleDraft& draft, const RequestKeys& keys, const DocNode* resources,
               const DocNode* types, Problems& problems) {
  const bool no_gpus = keys.gpus == nullptr || ParseMilli(keys.gpus->text) == 0;
  if (types != nullptr && no_gpus && keys.gpu_memory == nullptr) {
    problems.Error(types->key_mark,
                   "role " + Quoted(draft.role.name) + " names `gpu_types` but asks for no GPU",
                   "`gpus` or `gpu_memory` beside `gpu_types`");
  }
  bool asks = resources != nullptr && !resources->children.empty();
  for (const auto& slot : kRequestKeys) asks = asks || keys.*slot.slot != nullptr;
  if (!asks) {
    problems.Warning(draft.mark,
                     "role " + Quoted(draft.role.name) +
                         " asks for nothing: its workers have no GPU, core or memory of their own",
                     "gpus, gpu_memory, cpus, memory");
  }
}

void ApplyCount(const DocNode* node, RoleDraft& draft, Problems& problems) {
  if (node == nullptr) return;
  draft.count_mark = node->mark;
  const auto count = ReadCount(*node, problems);
  if (!count) return;
  draft.least = count->least;
  draft.role.count = count->most;
  draft.is_range = count->is_range;
}

RoleDraft ReadRole(const DocNode& node, Problems& problems) {
  RoleDraft draft;
  draft.mark = node.key_mark;
  draft.role.name = node.key;
  if (!IsName(node.key)) {
    problems.Error(node.key_mark, Quoted(node.key) + " is not the name of a role",
                   std::string(kNameRule));
  }
  MapReader reader(node, "a role", problems);
  ApplyCount(reader.Take("count"), draft, problems);
  RequestKeys keys;
  Amounts other;
  const auto* resources = reader.Take("resources");
  if (resources != nullptr) other = ReadResourceMap(*resources, keys, problems);
  draft.role.request = ReadRequest(keys, std::move(other), problems);
  const auto* types = reader.Take("gpu_types");
  if (types != nullptr) draft.role.gpu_types = ReadGpuTypes(*types, problems);
  if (const auto* names = reader.Take("node_names")) {
    draft.role.node_names =
        ReadNameList(*names, IsLabelName, "the name of a node", kNameRule, problems);
  }
  if (const auto* priority = reader.Take("priority")) {
    draft.role.priority =
        static_cast<int>(ReadInteger(*priority, {0, kMostPriority}, problems).value_or(0));
  }
  reader.Finish();
  if (node.kind == DocKind::kMap) CheckRole(draft, keys, resources, types, problems);
  return draft;
}

RoleDraft ReadShortForm(const DocNode* workers, const DocNode* resources, const DocNode* types,
                        const RequestKeys& top, const DocNode& job, Problems& problems) {
  RoleDraft draft;
  draft.mark = job.mark;
  draft.role.name = kOnlyRole;
  ApplyCount(workers, draft, problems);
  RequestKeys keys;
  Amounts other;
  if (resources != nullptr) other = ReadResourceMap(*resources, keys, problems);
  for (const auto& slot : kRequestKeys) {
    const auto* above = top.*slot.slot;
    if (above == nullptr) continue;
    if (keys.*slot.slot != nullptr) {
      problems.Error(above->key_mark, Quoted(slot.key) + " stands here and under `resources`",
                     "one of the two");
    }
    keys.*slot.slot = above;
  }
  draft.role.request = ReadRequest(keys, std::move(other), problems);
  if (types != nullptr) draft.role.gpu_types = ReadGpuTypes(*types, problems);
  if (job.kind == DocKind::kMap && job.Find("roles") == nullptr) {
    CheckRole(draft, keys, resources, types, problems);
  }
  return draft;
}

}  // namespace

TopologyWish ReadTopologyWish(const DocNode& node, Problems& problems) {
  TopologyWish wish;
  MapReader reader(node, "a topology wish", problems);
  const auto level = [&](std::string_view key, std::string& out) {
    if (const auto* value = reader.Take(key)) {
      out = ReadMatching(*value, IsLabelName, "the name of a level",
                         "a level of the cluster's topology, such as rack, node, numa or nvlink",
                         problems)
                .value_or("");
    }
  };
  level("require", wish.require);
  level("prefer", wish.prefer);
  level("name", wish.topology);
  reader.Finish();
  return wish;
}

std::vector<RoleDraft> ReadRoles(MapReader& job, const DocNode& node, Problems& problems) {
  const auto* roles = job.Take("roles");
  const auto* workers = job.Take("workers");
  const auto* resources = job.Take("resources");
  const auto* types = job.Take("gpu_types");
  RequestKeys top;
  for (const auto& slot : kRequestKeys) top.*slot.slot = job.Take(slot.key);
  // Read even where it must not stand, because its values may be wrong as well.
  auto only = ReadShortForm(workers, resources, types, top, node, problems);
  std::vector<RoleDraft> out;
  if (roles == nullptr) {
    out.push_back(std::move(only));
    return out;
  }
  std::vector<const DocNode*> both = {workers, resources, types};
  for (const auto& slot : kRequestKeys) both.push_back(top.*slot.slot);
  for (const auto* key : both) {
    if (key == nullptr) continue;
    problems.Error(key->key_mark, Quoted(key->key) + " cannot stand beside `roles`",
                   "in a job with `roles`, say it for each role");
  }
  if (roles->kind != DocKind::kMap || roles->children.empty()) {
    problems.Error(roles->mark,
                   "`roles` must be a map of at least one role, not " + DescribeNode(*roles),
                   "the name of a role and what it is: `worker: {count: 2, resources: ...}`");
    return out;
  }
  for (const auto& child : roles->children) out.push_back(ReadRole(child, problems));
  return out;
}

}  // namespace muster::model
