// Facts about the machine and this process, for reports of measurements.
//
// Read from the kernel's own files; on a system that lacks them the answers are empty or 0. Nothing
// here may enter a decision.
#pragma once

#include <cstdint>
#include <string>

namespace muster {

std::string MachineName();       // "Intel(R) Xeon(R) ... x2"
std::int64_t PeakResidentKib();  // the most memory that this process ever held

}  // namespace muster
