//! The loop between terminal and model: waits, passes events on, draws. Decides nothing.

use std::{io, sync::mpsc::Receiver};

use super::{
    keys::Keys,
    model::{Choice, Effect, Model, News},
    screen::{Screen, Waker, Woken, end_by},
};
use crate::{crash, process::Tty, ui::Style};

/// How the picker ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing is to be done.
    Left,
    /// This is to be done with this turn.
    Do(usize, Choice),
    /// What finds things out is gone.
    Lost,
}

/// What the loop asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// What lies between this turn and now, and then what going back would do.
    Look(usize),
    /// What going back to this turn would do, first of all.
    Plan(usize),
}

/// A terminal that is ours, and what is shown on it.
pub struct Picker {
    screen: Screen,
    model: Model,
}

impl Picker {
    /// Takes the terminal over. The waker is for the thread that sends news.
    ///
    /// # Errors
    ///
    /// Fails if the terminal does not let us.
    pub fn open(
        tty: Tty,
        model: Model,
        style: Style,
        may_suspend: bool,
    ) -> io::Result<(Self, Waker)> {
        let (screen, waker) = Screen::open(tty, style, may_suspend)?;
        Ok((Self { screen, model }, waker))
    }

    /// Lets the user choose. The terminal is given back when this returns.
    ///
    /// # Errors
    ///
    /// Fails if the terminal can no longer be read or written.
    pub fn run(self, wish: &dyn Fn(Wish), news: &Receiver<News>) -> io::Result<End> {
        let Self { mut screen, mut model } = self;
        let end = choose(&mut screen, &mut model, wish, news);
        drop(screen);
        match end? {
            Ended::By(signal) => {
                end_by(signal)?;
                Ok(End::Left)
            }
            Ended::So(end) => Ok(end),
        }
    }
}

enum Ended {
    So(End),
    By(i32),
}

fn choose(
    screen: &mut Screen,
    model: &mut Model,
    wish: &dyn Fn(Wish),
    news: &Receiver<News>,
) -> io::Result<Ended> {
    let mut keys = Keys::default();
    if let Some(chosen) = model.chosen() {
        wish(Wish::Look(chosen));
    }
    loop {
        for news in news.try_iter() {
            model.learn(news);
        }
        screen.draw(model)?;
        crash::bug("picker");
        let woken = screen.wait(keys.is_half().then_some(Keys::PATIENCE))?;
        let mut settled = None;
        match woken {
            Woken::Keys(bytes) => keys.push(&bytes),
            Woken::Quiet => settled = keys.settle(),
            Woken::Else => (),
            Woken::HungUp => return Ok(Ended::So(End::Left)),
            Woken::Lost => return Ok(Ended::So(End::Lost)),
            Woken::End(signal) => return Ok(Ended::By(signal)),
        }
        // Everything that has been typed, before anything is drawn: a slow line falls behind
        // otherwise.
        while let Some(key) = settled.take().or_else(|| keys.next()) {
            match model.press(key) {
                Effect::Nothing => (),
                Effect::Look(turn) => wish(Wish::Look(turn)),
                Effect::Plan(turn) => wish(Wish::Plan(turn)),
                Effect::Do(turn, choice) => return Ok(Ended::So(End::Do(turn, choice))),
                Effect::Leave => return Ok(Ended::So(End::Left)),
                Effect::Suspend => screen.suspend()?,
                Effect::Redraw => screen.redraw()?,
            }
        }
    }
}
