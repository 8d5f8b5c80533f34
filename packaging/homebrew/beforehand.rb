# Written, not tested. It builds from the sources of a tap's own checkout, so it needs no address of a release:
#     brew install --HEAD ./packaging/homebrew/beforehand.rb
class Beforehand < Formula
  desc "Checkpoint before an AI coding agent changes your files"
  license any_of: ["MIT", "Apache-2.0"]
  head File.expand_path("../..", __dir__), using: :git

  depends_on "rust" => :build

  def install
    system "cargo", "install", *std_cargo_args
    system "cargo", "run", "--locked", "--example", "pages", "--", buildpath/"pages"
    man1.install Dir["pages/man/*"]
    bash_completion.install "pages/completions/beforehand.bash" => "beforehand"
    zsh_completion.install "pages/completions/_beforehand"
    fish_completion.install "pages/completions/beforehand.fish"
  end

  def caveats
    <<~TEXT
      Nothing is protected until your agents call it:
        beforehand install
    TEXT
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/beforehand --version") unless head?
    (testpath/"project/a").write "one"
    cd testpath/"project" do
      system bin/"beforehand", "create", "-m", "test"
      (testpath/"project/a").delete
      system bin/"beforehand", "restore", "latest", "--yes"
    end
    assert_equal "one", (testpath/"project/a").read
  end
end
