// The short type of a GPU, made from the name that the vendor gives it.
//
// A type is what queues have quotas of and jobs ask for, so it must be a legal name of our files
// and must not split one product by its packaging: "NVIDIA A100-SXM4-80GB" and "NVIDIA A100-PCIE-
// 40GB" are both "A100" (how much memory each has is known apart). Products whose name is more than
// one word keep all of them: "RTX-4090", "RTX-6000-Ada".
#pragma once

#include <string>
#include <string_view>

namespace muster::device {

std::string ShortGpuType(std::string_view vendor_name);

}  // namespace muster::device
