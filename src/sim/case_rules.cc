#include "sim/case_rules.h"

#include <algorithm>
#include <array>

namespace muster::sim {
namespace {

using engine::Policy;

constexpr std::array<CaseRule, 35> kRules = {{
    {"shrink", "elastic workers are taken back before anybody is stopped",
     [](Policy& p) { p.shrink = false; }},
    {"consolidate", "workers move so that somebody fits", [](Policy& p) { p.consolidate = false; }},
    {"reclaim", "a queue takes back what it is entitled to", [](Policy& p) { p.reclaim = false; }},
    {"reclaim_in_proportion", "above its quota nobody takes more than it helps",
     [](Policy& p) { p.reclaim_in_proportion = false; }},
    {"reclaim_by_resource", "nobody gives back one resource for having too much of another",
     [](Policy& p) { p.reclaim_by_resource = false; }},
    {"search_again_later", "a search that was cut off lets others go first",
     [](Policy& p) { p.search_again_later = false; }},
    {"preempt", "higher priority in the same queue goes first",
     [](Policy& p) { p.preempt = false; }},
    {"preempt_within_share", "preemption does not lift a queue above its fair share",
     [](Policy& p) { p.preempt_within_share = false; }},
    {"evict_stale", "a gang below its minimum gives up after its grace",
     [](Policy& p) { p.evict_stale = false; }},
    {"victims_may_move", "a victim that fits elsewhere is moved",
     [](Policy& p) { p.victims_may_move = false; }},
    {"lost_work", "victims are those who lose the least",
     [](Policy& p) { p.compare_lost_work = false; }},
    {"worth", "workers that are alone go where those to come lose the least",
     [](Policy& p) { p.place_by_worth = false; }},
    {"gang_packing", "a gang goes to as few nodes and islands as it can",
     [](Policy& p) { p.gang_packing = engine::GangPacking::kFullestNode; }},
    {"decay", "who used much lately weighs less", [](Policy& p) { p.decay_half_life_ms = 0; }},
    {"grow", "elastic jobs grow on what is left", [](Policy& p) { p.grow = false; }},
    {"by_goodput", "sizes and GPU types go to whom they speed up most",
     [](Policy& p) { p.by_goodput = false; }},
    {"keep_promises", "room that victims leave goes to whom it was promised",
     [](Policy& p) { p.keep_promises = false; }},
    {"gpu_type_wishes", "GPU types in the order of preference",
     [](Policy& p) { p.gpu_type_wishes = false; }},
    {"quota_by_type", "quota, limit and share of a GPU type",
     [](Policy& p) { p.quota_by_type = false; }},
    {"confinement", "queues and kinds keep to GPU types and labelled nodes",
     [](Policy& p) { p.confinement = false; }},
    {"topology_wishes", "a group requires or prefers a level",
     [](Policy& p) { p.topology_wishes = false; }},
    {"link_distance", "the GPUs of a worker are closely linked",
     [](Policy& p) { p.link_distance = false; }},
    {"spare_islands", "a small worker does not break an island",
     [](Policy& p) { p.spare_islands = false; }},
    {"near_nic", "gangs sit where the NIC is, single workers elsewhere",
     [](Policy& p) { p.near_nic = false; }},
    {"members_apart", "shares of one gang lie on different GPUs",
     [](Policy& p) { p.members_apart = false; }},
    {"fixed_work", "work that is not preemptible stays, inside quotas",
     [](Policy& p) { p.fixed_work = false; }},
    {"fixed_builds", "build work is never preempted", [](Policy& p) { p.fixed_builds = false; }},
    {"limits", "limits bind at every level", [](Policy& p) { p.limits = false; }},
    {"queue_priority", "the band of higher priority is served first",
     [](Policy& p) { p.queue_priority = false; }},
    {"min_runtime", "young jobs of a queue are no victims",
     [](Policy& p) { p.min_runtime = false; }},
    {"preemption_delay", "a job evicts nobody before its delay",
     [](Policy& p) { p.preemption_delay = false; }},
    {"cordon", "cordoned nodes take nobody, draining ones are emptied",
     [](Policy& p) { p.cordon = false; }},
    {"reserve", "room is kept for the first gang that finds none",
     [](Policy& p) { p.reserve = false; }},
    {"backfill", "others use that room until then", [](Policy& p) { p.backfill = false; }},
    {"move_limit", "one consolidation moves only so many workers",
     [](Policy& p) { p.move_limit = -1; }},
}};

}  // namespace

std::span<const CaseRule> CaseRules() { return kRules; }

const CaseRule* FindCaseRule(std::string_view name) {
  const auto found = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const CaseRule& rule) { return rule.name == name; });
  return found == kRules.end() ? nullptr : &*found;
}

}  // namespace muster::sim
