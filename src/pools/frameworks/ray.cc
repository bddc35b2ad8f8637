#include <fmt/format.h>

#include <algorithm>

#include "pools/frameworks/recipes.h"

namespace muster::pools {
namespace {

constexpr std::string_view kScript = "ray_worker.sh";

// `ray stop` would end every Ray on the node, so a node of this job is a child (--block) that is
// ended by its process id.
constexpr std::string_view kScriptBody = R"sh(#!/bin/sh
# ray_worker.sh head|node HOST PORT NODE_ADDRESS CPUS GPUS CLIENT_PORT [COMMAND...]
part=$1 head=$2:$3 address=$4 cpus=$5 gpus=$6 client=$7
port=$3
shift 7
if ! command -v ray >/dev/null 2>&1; then
  echo "muster: framework ray: there is no program \"ray\" in PATH on $(hostname)" >&2
  echo "muster: install it there, or name an image that has it" >&2
  exit 127
fi
if [ "$part" = node ]; then
  exec env -u RAY_ADDRESS ray start --address="$head" --node-ip-address="$address" \
    --num-cpus="$cpus" --num-gpus="$gpus" --disable-usage-stats --block
fi
ray= program=
pass() { [ -z "$program" ] || kill -s "$1" "$program" 2>/dev/null; }
for signal in TERM INT HUP USR1 USR2; do
  # shellcheck disable=SC2064
  trap "caught=$signal; pass $signal" "$signal"
done
# Told again each second until it is gone: a signal that comes before it runs is lost.
end_ray() {
  (while kill "$ray" 2>/dev/null; do sleep 1; done) &
  wait "$ray" 2>/dev/null
}
trap '[ -z "$ray" ] || end_ray' EXIT
env -u RAY_ADDRESS ray start --head --node-ip-address="$address" --port="$port" \
  --ray-client-server-port="$client" --num-cpus="$cpus" --num-gpus="$gpus" \
  --include-dashboard=false --disable-usage-stats --block >&2 &
ray=$!
until ray health-check --address "$head" >/dev/null 2>&1; do
  if ! kill -0 "$ray" 2>/dev/null; then
    echo "muster: framework ray: the head did not start; its messages are above" >&2
    exit 1
  fi
  [ -z "$caught" ] || exit 143
  sleep 1
done
"$@" &
program=$!
# A signal ends the wait, not the program: wait again until it is gone.
while :; do
  caught=
  wait "$program"
  status=$?
  [ -n "$caught" ] || break
done
exit "$status"
)sh";

std::string Cpus(const GangView& gang, const Member& me) {
  const auto& roles = gang.spec.roles;
  const auto role = std::find_if(roles.begin(), roles.end(),
                                 [&me](const model::Role& one) { return one.name == me.role; });
  const std::int64_t milli = role == roles.end() ? 0 : role->request.cpu_milli;
  return std::to_string(std::max<std::int64_t>(1, milli / 1000));
}

}  // namespace

Result<void> SetUpRay(const GangView& gang, int rank, WorkerSetup& setup) {
  if (setup.command.empty()) {
    return Fail(ErrorCode::kInvalid, "framework ray needs a command",
                "write `command: [...]`: what runs beside the head");
  }
  const Member& me = MemberOf(gang, rank);
  const std::string head = Leader(gang).host;
  setup.env["RAY_ADDRESS"] = fmt::format("{}:{}", head, PortText(gang, Port::kRayHead));
  std::vector<std::string> command{fmt::format("{}/{}", gang.job_dir, kScript),
                                   rank == 0 ? "head" : "node",
                                   head,
                                   PortText(gang, Port::kRayHead),
                                   me.host,
                                   Cpus(gang, me),
                                   std::to_string(me.gpus),
                                   PortText(gang, Port::kRayClient)};
  if (rank == 0) {
    command.insert(command.end(), setup.command.begin(), setup.command.end());
  } else {
    setup.follows = true;
  }
  setup.command = std::move(command);
  setup.files.push_back({std::string(kScript), std::string(kScriptBody), true});
  return {};
}

}  // namespace muster::pools
