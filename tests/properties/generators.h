// Generators: scenes for RapidCheck, which shrink, and seeded ones that are the same everywhere.
//
// The seed is fixed, so that a test of the tree either fails for everybody or for nobody; a failure
// prints it with the smallest scene that fails. RC_PARAMS="seed=N max_success=M" looks at M scenes
// of another seed instead, which is how to search for what no run has found yet.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstddef>
#include <iosfwd>
#include <sstream>
#include <string>

#include "base/random.h"
#include "drafts.h"

namespace muster::properties {

struct SceneSize {
  int nodes = 4;
  int queues = 5;
  int events = 30;
};

rc::Gen<Scene> AnyScene(SceneSize size);
// One-GPU preemptible jobs, quotas that together fit the cluster, nothing that stands in the way.
rc::Gen<Scene> AnyQuotaScene();

Scene DrawScene(Random& random, SceneSize size);

void showValue(const Scene& scene, std::ostream& out);  // the name that RapidCheck looks for

// The number of scenes and the seed, where RC_PARAMS does not say otherwise.
rc::detail::TestParams SceneParams(int scenes);

// Runs the property, a function of one or more generated values, on that many scenes.
template <typename Property>
void CheckScenes(int scenes, const Property& property) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  rc::detail::TestMetadata metadata;
  metadata.id = std::string(info->test_suite_name()) + "/" + info->name();
  metadata.description = info->name();
  const auto params = SceneParams(scenes);
  const auto result = rc::detail::checkTestable(property, metadata, params);
  if (result.template is<rc::detail::SuccessResult>()) return;
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  FAIL() << message.str() << "\nRC_PARAMS=\"seed=" << params.seed
         << " max_success=" << params.maxSuccess << "\"";
}

}  // namespace muster::properties
