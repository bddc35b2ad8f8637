// PastFile: a past as bytes, so that last week can be replayed on another machine.
//
// With it goes the policy that was in force when it was saved, which is the old one of a diff. What
// jobs ran and with which environment is left out: a replay has no use for it, and it may be
// secret. A checksum tells a file that was cut off or damaged, and what is read is looked through:
// sizes, times and numbers that no cluster has are refused.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "engine/policy_settings.h"
#include "sim/past/past.h"

namespace muster::sim {

struct PastFile {
  Past past;
  engine::SettingValues policy;  // what was not as by default
};

std::string EncodePast(PastFile file);
Result<PastFile> DecodePast(std::string_view bytes);

}  // namespace muster::sim
