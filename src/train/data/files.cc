#include "train/data/files.h"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "train/exact/hash.h"

namespace muster::train {

namespace {

constexpr std::size_t kMostBytes = std::size_t{1} << 30U;

// The whole file; unpacked when it is gzipped.
Result<std::string> ReadUnpacked(const std::string& path, const std::string& hint) {
  errno = 0;
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) {
    return Fail(ErrorCode::kNotFound, fmt::format("cannot open {}: {}", path, std::strerror(errno)),
                hint);
  }
  std::string out;
  std::vector<char> part(std::size_t{1} << 18U);
  while (true) {
    const int got = gzread(file.get(), part.data(), static_cast<unsigned>(part.size()));
    if (got < 0) {
      int code = 0;
      return Fail(ErrorCode::kInvalid,
                  fmt::format("cannot read {}: {}", path, gzerror(file.get(), &code)), hint);
    }
    if (got == 0) break;
    out.append(part.data(), static_cast<std::size_t>(got));
    if (out.size() > kMostBytes) {
      return Fail(ErrorCode::kInvalid, fmt::format("{} has more than 1 GiB", path),
                  "data lies in memory; cut the file");
    }
  }
  // A truncated file ends like a whole one, but for this.
  int code = Z_OK;
  gzerror(file.get(), &code);
  if (code != Z_OK && code != Z_STREAM_END) {
    return Fail(ErrorCode::kInvalid, fmt::format("{} ends too early", path), hint);
  }
  return out;
}

// Pictures of one byte for each point.
class Images : public Dataset {
 public:
  Images(std::string description, std::size_t points, float scale, std::vector<unsigned char> bytes,
         std::vector<unsigned char> classes)
      : description_(std::move(description)),
        points_(points),
        scale_(scale),
        bytes_(std::move(bytes)),
        classes_(std::move(classes)) {}

  std::string Describe() const override { return description_; }
  std::size_t size() const override { return classes_.size(); }
  std::size_t input_cols() const override { return points_; }
  std::size_t target_cols() const override { return 1; }
  std::size_t outputs() const override { return 10; }
  LossKind loss() const override { return LossKind::kCrossEntropy; }

  void Sample(std::size_t index, std::span<float> input, std::span<float> target) const override {
    const unsigned char* from = bytes_.data() + index * points_;
    for (std::size_t i = 0; i < points_; ++i) input[i] = static_cast<float>(from[i]) * scale_;
    target[0] = static_cast<float>(classes_[index]);
  }
  std::uint64_t Digest() const override { return HashOf(classes_, HashOf(bytes_)); }

 private:
  std::string description_;
  std::size_t points_;
  float scale_;
  std::vector<unsigned char> bytes_;
  std::vector<unsigned char> classes_;
};

// The next number, and the comma or the end of the line behind it.
std::optional<double> TakeNumber(std::string_view& rest) {
  double out = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), out);
  if (error != std::errc()) return std::nullopt;
  rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
  if (!rest.empty() && rest.front() == ',') rest.remove_prefix(1);
  return out;
}

constexpr char kDigitsHint[] =
    "fetch them once with examples/train/fetch-digits; or apt-get download python3-sklearn && "
    "dpkg-deb -x python3-sklearn_*.deb sklearn, then "
    "digits:sklearn/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz";
constexpr char kFashionHint[] = "apt-get install dataset-fashion-mnist, or fashion:FOLDER";

// The header of an IDX file: what it holds, then its sizes.
Result<std::vector<unsigned char>> ReadIdx(const std::string& path,
                                           std::span<const std::size_t> sizes) {
  auto text = ReadUnpacked(path, kFashionHint);
  if (!text) return tl::unexpected(text.error());
  const auto number = [&](std::size_t index) {
    std::size_t out = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      out = out << 8U | static_cast<unsigned char>((*text)[index * 4 + i]);
    }
    return out;
  };
  const std::size_t header = 4 * (1 + sizes.size());
  bool right = text->size() >= header && number(0) == 0x800 + sizes.size();
  std::size_t bytes = 1;
  for (std::size_t i = 0; right && i < sizes.size(); ++i) {
    const std::size_t size = number(i + 1);
    right = sizes[i] == 0 || size == sizes[i];
    bytes *= size;
  }
  if (!right || text->size() != header + bytes) {
    return Fail(
        ErrorCode::kInvalid,
        fmt::format("{} is not what it should be: bytes in the IDX format, pictures of 28 x 28",
                    path),
        kFashionHint);
  }
  return std::vector<unsigned char>(text->begin() + static_cast<std::ptrdiff_t>(header),
                                    text->end());
}

Result<std::unique_ptr<Dataset>> OpenIdx(const std::string& folder, std::string_view which) {
  constexpr std::size_t kSide = 28;
  const std::array<std::size_t, 3> image_sizes = {0, kSide, kSide};
  const std::array<std::size_t, 1> label_sizes = {0};
  auto images = ReadIdx(fmt::format("{}/{}-images-idx3-ubyte.gz", folder, which), image_sizes);
  if (!images) return tl::unexpected(images.error());
  auto labels = ReadIdx(fmt::format("{}/{}-labels-idx1-ubyte.gz", folder, which), label_sizes);
  if (!labels) return tl::unexpected(labels.error());
  if (labels->size() * kSide * kSide != images->size() ||
      std::ranges::any_of(*labels, [](unsigned char label) { return label > 9; })) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("{}: {}-labels does not fit {}-images", folder, which, which),
                kFashionHint);
  }
  return std::make_unique<Images>(fmt::format("pictures, 28 x 28, from {}", folder), kSide * kSide,
                                  1.0F / 255.0F, *std::move(images), *std::move(labels));
}

// Places [first, last) of a text, as numbers of its characters.
class Text : public Dataset {
 public:
  Text(std::string description, std::vector<unsigned char> tokens, std::size_t vocabulary,
       std::size_t context)
      : description_(std::move(description)),
        tokens_(std::move(tokens)),
        vocabulary_(vocabulary),
        context_(context) {}

  std::string Describe() const override { return description_; }
  std::size_t size() const override { return tokens_.size() - context_; }
  std::size_t input_cols() const override { return context_; }
  std::size_t target_cols() const override { return context_; }
  std::size_t outputs() const override { return vocabulary_; }
  LossKind loss() const override { return LossKind::kCrossEntropy; }

  void Sample(std::size_t index, std::span<float> input, std::span<float> target) const override {
    for (std::size_t i = 0; i < context_; ++i) {
      input[i] = static_cast<float>(tokens_[index + i]);
      target[i] = static_cast<float>(tokens_[index + i + 1]);
    }
  }
  std::uint64_t Digest() const override { return HashOf(tokens_); }

 private:
  std::string description_;
  std::vector<unsigned char> tokens_;
  std::size_t vocabulary_, context_;
};

}  // namespace

Result<std::string> FindDigits(const std::string& home) {
  // Not by std::filesystem: torch 2.11 exports functions of an older one.
  const auto there = [](const std::string& path) { return ::access(path.c_str(), R_OK) == 0; };
  if (there(kDigitsFile)) return kDigitsFile;
  std::string fetched = fmt::format("{}/{}", home, kFetchedDigits);
  if (there(fetched)) return fetched;
  return Fail(ErrorCode::kNotFound,
              fmt::format("there are no handwritten digits here: neither {} nor {} can be read",
                          kDigitsFile, fetched),
              kDigitsHint);
}

Result<TrainAndTest> OpenDigits(const std::string& file) {
  const auto text = ReadUnpacked(file, kDigitsHint);
  if (!text) return tl::unexpected(text.error());
  constexpr std::size_t kPoints = 64;
  std::vector<unsigned char> bytes, classes;
  std::string_view rest = *text;
  while (!rest.empty()) {
    for (std::size_t i = 0; i <= kPoints; ++i) {
      const auto number = TakeNumber(rest);
      if (!number || *number < 0 || *number > (i < kPoints ? 16 : 9)) {
        return Fail(ErrorCode::kInvalid,
                    fmt::format("{}, line {}: not 64 numbers from 0 to 16 and a digit", file,
                                classes.size() + 1),
                    kDigitsHint);
      }
      (i < kPoints ? bytes : classes).push_back(static_cast<unsigned char>(*number));
    }
    while (!rest.empty() && (rest.front() == '\n' || rest.front() == '\r')) rest.remove_prefix(1);
  }
  if (classes.size() < 5) {
    return Fail(ErrorCode::kInvalid, fmt::format("{} has {} samples", file, classes.size()),
                kDigitsHint);
  }
  return Split(std::make_shared<Images>(fmt::format("handwritten digits, 8 x 8, from {}", file),
                                        kPoints, 1.0F / 16.0F, std::move(bytes),
                                        std::move(classes)));
}

Result<TrainAndTest> OpenFashion(const std::string& folder) {
  auto train = OpenIdx(folder, "train");
  if (!train) return tl::unexpected(train.error());
  auto test = OpenIdx(folder, "t10k");
  if (!test) return tl::unexpected(test.error());
  return TrainAndTest{*std::move(train), *std::move(test)};
}

Result<TrainAndTest> OpenText(const std::string& file, std::size_t context) {
  const auto text = ReadUnpacked(file, "give the path of a text: text:FILE");
  if (!text) return tl::unexpected(text.error());
  std::array<unsigned char, std::numeric_limits<unsigned char>::max() + 1> codes{};
  for (const char character : *text) codes[static_cast<unsigned char>(character)] = 1;
  std::size_t vocabulary = 0;
  for (auto& code : codes) {
    const bool occurs = code == 1;
    code = static_cast<unsigned char>(vocabulary);
    vocabulary += occurs ? 1 : 0;
  }
  std::vector<unsigned char> tokens;
  tokens.reserve(text->size());
  for (const char character : *text) tokens.push_back(codes[static_cast<unsigned char>(character)]);
  const std::size_t cut = tokens.size() - tokens.size() / 10;
  if (tokens.size() - cut <= context) {
    return Fail(
        ErrorCode::kInvalid,
        fmt::format("{} has {} characters: too few for samples of {}", file, tokens.size(),
                    context),
        fmt::format("a text of more than {} characters, or a shorter context", 10 * (context + 1)));
  }
  const auto split = tokens.begin() + static_cast<std::ptrdiff_t>(cut);
  const std::string description = fmt::format("characters of {}", file);
  return TrainAndTest{
      std::make_unique<Text>(description, std::vector(tokens.begin(), split), vocabulary, context),
      std::make_unique<Text>(description, std::vector(split, tokens.end()), vocabulary, context)};
}

}  // namespace muster::train
