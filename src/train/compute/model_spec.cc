#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "train/compute/model.h"
#include "train/compute/settings.h"

namespace muster::train {

namespace {

tl::unexpected<Error> Wrong(const Settings& settings, const std::string& what, std::string hint) {
  return Fail(ErrorCode::kInvalid, fmt::format("model '{}': {}", settings.text, what),
              std::move(hint));
}

constexpr double kLargestSize = 1 << 20;

Result<ModelSpec> ParseMlp(Settings settings) {
  ModelSpec out{.kind = ModelKind::kMlp, .text = settings.text};
  std::erase_if(settings.list, [&](const Setting& setting) {
    const auto size = ParseInteger(setting.value);
    if (!setting.name.empty() || !size || *size < 1 || static_cast<double>(*size) > kLargestSize) {
      return false;
    }
    out.sizes.push_back(static_cast<std::size_t>(*size));
    return true;
  });
  std::int64_t slices = 1;
  const Wanted wanted[] = {{.name = "slices", .integer = &slices, .least = 1, .most = 1024}};
  if (auto read = ReadSettings(settings, wanted); !read) return tl::unexpected(read.error());
  if (out.sizes.size() < 2) {
    return Wrong(settings, "an mlp has at least two sizes",
                 "inputs, hidden units and outputs: mlp:64,128,10");
  }
  out.slices = static_cast<int>(slices);
  for (std::size_t hidden = 1; slices > 1 && hidden + 1 < out.sizes.size(); hidden += 2) {
    if (out.sizes[hidden] % static_cast<std::size_t>(slices) != 0) {
      return Wrong(
          settings,
          fmt::format("{} slices do not divide {} hidden units", slices, out.sizes[hidden]),
          "choose hidden units that the slices divide");
    }
  }
  return out;
}

Result<ModelSpec> ParseConv(const Settings& settings) {
  ModelSpec out{.kind = ModelKind::kConv, .text = settings.text};
  if (settings.text == "conv:digits") {
    out.image = 8;
  } else if (settings.text == "conv:fashion") {
    out.image = 28;
  } else {
    return Wrong(settings, "no such images", "conv:digits (8 x 8) or conv:fashion (28 x 28)");
  }
  return out;
}

Result<ModelSpec> ParseTransformer(const Settings& settings) {
  std::int64_t layers = 0, width = 0, heads = 0, context = 0, vocabulary = 0, slices = 1;
  const auto want = [](std::string_view name, std::int64_t& value, double most) {
    return Wanted{.name = name, .integer = &value, .least = 1, .most = most};
  };
  const std::array wanted = {want("layers", layers, 1000),
                             want("width", width, kLargestSize),
                             want("heads", heads, 1024),
                             want("context", context, kLargestSize),
                             want("vocab", vocabulary, kLargestSize),
                             want("slices", slices, 1024)};
  if (auto read = ReadSettings(settings, wanted); !read) return tl::unexpected(read.error());
  for (const auto& setting : wanted) {
    if (*setting.integer == 0) {
      return Wrong(settings, fmt::format("{} is missing", setting.name),
                   "transformer:layers=4,width=64,heads=4,context=64,vocab=96");
    }
  }
  if (width % heads != 0) {
    return Wrong(settings, fmt::format("{} heads do not divide a width of {}", heads, width),
                 "choose a width that the heads divide");
  }
  if (heads % slices != 0) {
    return Wrong(settings, fmt::format("{} slices do not divide {} heads", slices, heads),
                 "choose heads that the slices divide");
  }
  return ModelSpec{.kind = ModelKind::kTransformer,
                   .text = settings.text,
                   .layers = static_cast<std::size_t>(layers),
                   .width = static_cast<std::size_t>(width),
                   .heads = static_cast<std::size_t>(heads),
                   .context = static_cast<std::size_t>(context),
                   .vocabulary = static_cast<std::size_t>(vocabulary),
                   .slices = static_cast<int>(slices)};
}

}  // namespace

Result<ModelSpec> ParseModel(std::string_view text) {
  const auto settings = ParseSettings(text);
  if (!settings) return tl::unexpected(settings.error());
  if (settings->word == "mlp") return ParseMlp(*settings);
  if (settings->word == "conv") return ParseConv(*settings);
  if (settings->word == "transformer") return ParseTransformer(*settings);
  return Fail(ErrorCode::kInvalid, fmt::format("no model '{}'", settings->word),
              "mlp:64,128,10, conv:digits, conv:fashion or "
              "transformer:layers=4,width=64,heads=4,context=64,vocab=96");
}

}  // namespace muster::train
