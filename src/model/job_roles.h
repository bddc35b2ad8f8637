// The parts of a job file that become roles and groups; used by the job codec only.
//
// Roles are read first, each with the minimum its `count` states; groups then take the roles and
// decide where the minimum is kept.
#pragma once

#include <vector>

#include "model/document.h"
#include "model/fields.h"
#include "model/job.h"
#include "model/problems.h"

namespace muster::model {

struct RoleDraft {
  Role role;
  int least = 1;
  bool is_range = false;  // `count: 2..8` rather than a plain number
  Mark mark;
  Mark count_mark;
};

struct CountRange {
  int least = 1;
  int most = 1;
  bool is_range = false;
};

// Reads `roles`, or the short form at the top level of the job.
std::vector<RoleDraft> ReadRoles(MapReader& job, const DocNode& node, Problems& problems);

TopologyWish ReadTopologyWish(const DocNode& node, Problems& problems);

// Fills job.groups and job.roles; `groups` is the key's value, or null where it is not written.
void BuildGroups(const DocNode* groups, std::vector<RoleDraft> roles, TopologyWish topology,
                 Job& job, Problems& problems);

}  // namespace muster::model
