# Written, not tested.
#     nix run ./packaging/nix          (in a checkout)
{
  description = "Takes a checkpoint before an AI coding agent changes your files, and restores them when you ask";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs = { self, nixpkgs }:
    let
      systems = [ "x86_64-linux" "aarch64-linux" "x86_64-darwin" "aarch64-darwin" ];
      each = make: nixpkgs.lib.genAttrs systems (system: make nixpkgs.legacyPackages.${system});
      manifest = (builtins.fromTOML (builtins.readFile ../../Cargo.toml)).package;
    in
    {
      packages = each (pkgs: rec {
        beforehand = pkgs.rustPlatform.buildRustPackage {
          pname = manifest.name;
          inherit (manifest) version;
          src = ../..;
          cargoLock.lockFile = ../../Cargo.lock;
          nativeBuildInputs = [ pkgs.installShellFiles ];
          # The tests need git, tmux, zsh, fish and strace; `.ci/run` runs them.
          doCheck = false;
          postInstall = ''
            cargo run --offline --locked --example pages -- pages
            installManPage pages/man/*
            installShellCompletion --cmd beforehand \
              --bash pages/completions/beforehand.bash \
              --zsh pages/completions/_beforehand \
              --fish pages/completions/beforehand.fish
          '';
          meta = {
            inherit (manifest) description;
            license = with pkgs.lib.licenses; [ mit asl20 ];
            mainProgram = "beforehand";
            platforms = systems;
          };
        };
        default = beforehand;
      });
    };
}
